import { expect, test } from 'vitest';
import { faultOf } from '../../../../runs/temporal/temporal-values.ts';

const ours = (type: string, message: string, cause: object) => ({
  message,
  applicationFailureInfo: { type },
  cause,
});
const stat = { message: "ENOENT: no such file or directory, stat 'solved.jsonl'" };

test('an error of ours says what to do, and is shown in the place of what it came from', () => {
  const refused = ours(
    'gradus.spec.invalid-data',
    'solved.jsonl cannot be read: give an absolute path',
    stat,
  );
  expect(faultOf(refused).message).toBe('solved.jsonl cannot be read: give an absolute path');
  expect(faultOf({ message: 'Activity task failed', cause: refused }).message).toBe(refused.message);
});

test('of what nobody has thought of the beginning of the chain is shown', () => {
  const failure = ours('gradus.infra.unexpected', 'fetch failed', { message: 'connect ECONNREFUSED' });
  expect(faultOf({ message: 'Activity task failed', cause: failure }).message).toBe('connect ECONNREFUSED');
  expect(faultOf({ message: 'Activity task failed', cause: stat }).message).toBe(stat.message);
});

test('what is too long is cut, and the cut is marked', () => {
  const failure = { message: 'x'.repeat(600) };
  expect(faultOf(failure).message).toBe(`${'x'.repeat(499)}…`);
  expect(faultOf(failure, 600).message).toBe(failure.message);
});
