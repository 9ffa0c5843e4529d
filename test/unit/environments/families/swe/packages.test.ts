import { describe, expect, test } from 'vitest';
import type { Split } from '../../../../../core/refs.ts';
import {
  LEVELS,
  mutated,
  mutationsOf,
  testKey,
} from '../../../../../environments/families/swe/packages/bugs.ts';
import {
  isKept,
  isMutated,
  isTestFile,
  packageCalled,
  PACKAGES,
} from '../../../../../environments/families/swe/packages/packages.ts';

const SPLITS: readonly Split[] = ['train', 'heldout', 'test'];

test('every level of every split has bugs, and all bugs of a function are in one split', () => {
  const owner = new Map<string, Split>();
  const seen = new Set<string>();
  for (const split of SPLITS) {
    for (const level of LEVELS) {
      const mutations = mutationsOf(split, level);
      expect(mutations.length, `${split} ${level}`).toBeGreaterThan(0);
      for (const { package: name, file, function: around, line, column, fails } of mutations) {
        const key = `${name} ${file} ${around}`;
        if ((owner.get(key) ?? split) !== split) expect.fail(`${key} is in ${owner.get(key)} and ${split}`);
        owner.set(key, split);
        expect(seen).not.toContain(`${name} ${file} ${line} ${column}`);
        seen.add(`${name} ${file} ${line} ${column}`);
        expect(isMutated(packageCalled(name), file)).toBe(true);
        expect(fails.every((one) => one.length === testKey('any').length)).toBe(true);
      }
    }
  }
  expect(new Set([...owner.keys()].map((key) => key.split(' ')[0]))).toEqual(
    new Set(PACKAGES.map(({ name }) => name)),
  );
});

describe('a mutation', () => {
  const at = { file: 'a.py', line: 2, column: 9, old: '<', new: '<=' };

  test('exchanges the token at its place', () => {
    expect(mutated('def f(a):\n    if a < 3:\n', { ...at, column: 9 })).toBe('def f(a):\n    if a <= 3:\n');
  });

  test('is refused where another token stands', () => {
    expect(() => mutated('def f(a):\n    if a > 3:\n', at)).toThrow(/a\.py:2 has no < at 9/u);
  });
});

test('tests among the sources are neither mutated nor left out, and no history is kept', () => {
  const toolz = packageCalled('toolz');
  const paths = [
    'toolz/itertoolz.py',
    'toolz/tests/test_itertoolz.py',
    'toolz/tests/__init__.py',
    '.git/HEAD',
    'PKG-INFO',
  ];
  expect(paths.filter((path) => isKept(toolz, path))).toEqual(paths.slice(0, 3));
  expect(paths.filter((path) => isMutated(toolz, path))).toEqual(paths.slice(0, 1));
  expect(paths.filter((path) => isTestFile(toolz, path))).toEqual(paths.slice(1, 2));
});
