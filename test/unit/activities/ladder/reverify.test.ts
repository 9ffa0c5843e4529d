import { expect, test } from 'vitest';
import { assertVerifier } from '../../../../activities/ladder/reverify.ts';

const environment = {
  name: 'words',
  verifiers: [
    { name: 'exact-match', version: '2' },
    { name: 'format', version: '1' },
  ],
};

test('a re-verification by a misspelt verifier is told the nearest name, and one by an old version the one there is', () => {
  expect(() => assertVerifier(environment, 'exact-match', '2')).not.toThrow();
  expect(() => assertVerifier(environment, 'exact-mach', '2')).toThrow(
    'words has no verifier "exact-mach"; did you mean "exact-match"?',
  );
  expect(() => assertVerifier(environment, 'exact-match', '1')).toThrow(
    'words has version 2 of exact-match, not 1: give that version, or start',
  );
});
