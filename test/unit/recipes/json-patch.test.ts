import { expect, test } from 'vitest';
import { applyPatch } from '../../../recipes/json-patch.ts';

const document = { stages: [{ name: 'rl', algorithm: { beta: 0 } }], 'a/b': 1 };

test('a patch replaces, adds and removes, and leaves the document as it was', () => {
  const before = structuredClone(document);
  expect(
    applyPatch(document, [
      { op: 'replace', path: '/stages/0/algorithm/beta', value: 0.1 },
      { op: 'add', path: '/stages/0/maxSteps', value: 3 },
      { op: 'add', path: '/stages/-', value: { name: 'next' } },
      { op: 'add', path: '/stages/0', value: 'first' },
      { op: 'remove', path: '/a~1b' },
    ]),
  ).toEqual({ stages: ['first', { name: 'rl', algorithm: { beta: 0.1 }, maxSteps: 3 }, { name: 'next' }] });
  expect(document).toEqual(before);
});

test.each(['/stages/1', '/stages/0/algorithm/gamma', '/nowhere/x', '/stages/0/name/x', 'stages', ''])(
  'a path that leads nowhere is refused: %s',
  (path) => {
    expect(() => applyPatch(document, [{ op: 'replace', path, value: 1 }])).toThrow(/leads nowhere/);
  },
);
