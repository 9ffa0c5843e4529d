import { expect, test } from 'vitest';
import type { Split } from '../../../../../core/refs.ts';
import { patched } from '../../../../../environments/families/swe/patch.ts';
import { SMALL_LEVELS, smallBug } from '../../../../../environments/families/swe/small/modules.ts';

test('no bug of one split is a bug of another, and each is mended by its patch', () => {
  const owner = new Map<string, Split>();
  for (const split of ['train', 'heldout', 'test'] as const) {
    for (const shape of SMALL_LEVELS) {
      for (let index = 0; index < 60; index++) {
        const bug = smallBug(shape, split, index);
        const { line } = bug;
        const key = `${line.name} ${line.wrong} ${line.right}`;
        if ((owner.get(key) ?? split) !== split) expect.fail(`${key} is in ${owner.get(key)} and ${split}`);
        owner.set(key, split);
        expect(patched(bug.tree, bug.mend).get('m.py')).toBe(
          bug.tree.get('m.py')!.replace(bug.wrong, bug.right),
        );
      }
    }
  }
});

/** Bodies of one line that are not what the function means: constants, and each sum of arguments and a constant. */
const SUMS: Record<string, (a: number, b: number) => number> = {
  '0': () => 0,
  a: (a) => a,
  b: (_, b) => b,
  'a + b': (a, b) => a + b,
  'a - b': (a, b) => a - b,
  'b - a': (a, b) => b - a,
  'a * b': (a, b) => a * b,
};

test('no constant passes the tests of a function, nor another sum of its arguments and a constant', () => {
  for (const shape of SMALL_LEVELS) {
    for (let index = 0; index < 500; index++) {
      const { line, tree } = smallBug(shape, 'test', index);
      const asserts = tree.get('test_m.py')!.matchAll(RegExp(`${line.name}\\((.), (.)\\) == (\\S+)`, 'g'));
      const cases = [...asserts].map(([, a, b, want]) => ({ a: Number(a), b: Number(b), want: want! }));
      if (cases.some(({ want }) => /[TF]/.test(want))) {
        expect(new Set(cases.map(({ want }) => want)).size, line.right).toBe(2);
        continue;
      }
      const passing = Object.keys(SUMS).filter((name) => {
        const rests = cases.map(({ a, b, want }) => Number(want) - SUMS[name]!(a, b));
        return rests.every((rest) => rest === rests[0]);
      });
      // What is meant, alone.
      expect(passing.length, `${tree.get('test_m.py')} ${passing.join()}`).toBe(1);
    }
  }
});
