import { describe, expect, test } from 'vitest';
import type { Split, TaskRef } from '../../../../core/refs.ts';
import { dealTasks, drawTask, randomOf, splitOfProblem } from '../../../../index.ts';

const SPLITS: Split[] = ['train', 'heldout', 'test'];
const at = (split: Split, index: number, level = 1): TaskRef => ({
  environment: 'sums',
  split,
  level,
  index,
});
const sum = (ref: TaskRef): string =>
  drawTask(
    ref,
    (random) => `${random.int(0, 30)}+${random.int(0, 30)}`,
    (problem) => problem,
  );

describe('problems that are drawn', () => {
  test('are the same for the same coordinates and others for others', () => {
    expect(sum(at('train', 7))).toBe(sum(at('train', 7)));
    expect(new Set(Array.from({ length: 20 }, (_, index) => sum(at('train', index)))).size).toBeGreaterThan(
      15,
    );
  });

  test('are in one split, however often and at whatever level they are made', () => {
    const seen = new Map<string, Split>();
    for (const level of [1, 2])
      for (const split of SPLITS)
        for (let index = 0; index < 2000; index++) {
          const problem = sum(at(split, index, level));
          expect(seen.get(problem) ?? split).toBe(split);
          seen.set(problem, split);
        }
    // Most of the 961 have come, many of them several times.
    expect(seen.size).toBeGreaterThan(900);
  });

  test('of which a split has none are refused with what to do', () => {
    const one = (split: Split): string =>
      drawTask(
        at(split, 0),
        () => 'the only one',
        (problem) => problem,
      );
    const split = splitOfProblem('sums', 'the only one');
    expect(one(split)).toBe('the only one');
    for (const other of SPLITS.filter((each) => each !== split))
      expect(() => one(other)).toThrow(`sums has no ${other} task 0 at level 1: 10000 draws gave no problem`);
  });
});

describe('problems that are listed', () => {
  const words = Array.from({ length: 500 }, (_, n) => `word ${n}`);
  const dealt = dealTasks('words', [...words, ...words], (word) => word);

  test('come once each, in the split that their digest says', () => {
    const all = SPLITS.flatMap((split) =>
      Array.from({ length: dealt.count(split) }, (_, index) => {
        const word = dealt.at({ split, index });
        expect(splitOfProblem('words', word)).toBe(split);
        return word;
      }),
    );
    expect(all.toSorted()).toEqual(words.toSorted());
    expect(dealt.at({ split: 'test', index: dealt.count('test') })).toBe(
      dealt.at({ split: 'test', index: 0 }),
    );
    expect(dealt.count('train') / 500).toBeCloseTo(0.6, 1);
  });

  test('stay in their split where others are added', () => {
    const more = dealTasks('words', [...words, 'one more'], (word) => word);
    const inTest = (from: typeof dealt): string[] =>
      Array.from({ length: from.count('test') }, (_, index) => from.at({ split: 'test', index }));
    expect(inTest(more)).toEqual(expect.arrayContaining(inTest(dealt)));
  });

  test('of which a split has none are refused when they are asked for', () => {
    const few = dealTasks('few', ['a'], (word) => word, { shares: { train: 1, heldout: 0, test: 0 } });
    expect(few.count('heldout')).toBe(0);
    expect(() => few.at({ split: 'heldout', index: 0 })).toThrow(
      'few has no heldout tasks: of its 1 problems',
    );
  });
});

test('random numbers of a task have several independent streams', () => {
  const ref = at('train', 3);
  expect(randomOf(ref).uniform()).toBe(randomOf(ref).uniform());
  expect(randomOf(ref, 'names').uniform()).not.toBe(randomOf(ref).uniform());
  expect(randomOf(at('test', 3)).uniform()).not.toBe(randomOf(ref).uniform());
});

test('shares that do not add up to 1 are refused', () => {
  expect(() => splitOfProblem('sums', '1+1', { train: 0.8, heldout: 0.2, test: 0.2 })).toThrow(
    'add up to it',
  );
});
