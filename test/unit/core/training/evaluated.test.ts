import { expect, test } from 'vitest';
import { RandomStream } from '../../../../core/random.ts';
import { differenceOf, doublings, successWithin } from '../../../../core/training/evaluated.ts';
import type { SampleFacts, TaskSamples } from '../../../../core/training/evaluated.ts';

const task = (index: number, samples: SampleFacts[]): TaskSamples => ({
  environment: 'numbers',
  split: 'test',
  level: 1,
  index,
  samples,
});
const sample = (solved: boolean | null, turns = 1, tokens = 10): SampleFacts => ({ solved, turns, tokens });

test('success within a limit is what the same episodes come to where that is their limit', () => {
  const random = new RandomStream('within');
  const MOST = 8;
  // An episode is a number of turns that it takes to the answer, and whether that is right.
  const episodes = Array.from({ length: 200 }, () =>
    Array.from({ length: 3 }, () => ({ takes: random.int(1, 12), right: random.uniform() < 0.6 })),
  );
  const play = (limit: number): TaskSamples[] =>
    episodes.map((samples, index) =>
      task(
        index,
        samples.map(({ takes, right }) => sample(right && takes <= limit, Math.min(takes, limit))),
      ),
    );
  const limits = Array.from({ length: MOST }, (_, i) => i + 1);
  const curve = successWithin(play(MOST), 'turns', limits, 0.95);
  expect(curve.map(({ most }) => most)).toEqual(limits);
  for (const [i, limit] of limits.entries()) {
    const [alone] = successWithin(play(limit), 'turns', [limit], 0.95);
    expect(curve[i]).toEqual(alone);
  }
});

test('tasks count the same however many of their samples could be judged, and not at all without any', () => {
  const tasks = [
    task(0, [sample(true, 2), sample(true, 3), sample(null, 1)]),
    task(1, [sample(false, 1), sample(null), sample(null)]),
    task(2, [sample(null), sample(null), sample(null)]),
  ];
  expect(successWithin(tasks, 'turns', [1, 2, 3], 0.95)).toMatchObject([
    { most: 1, mean: 0, n: 2 },
    { most: 2, mean: 0.25, n: 2 },
    { most: 3, mean: 0.5, n: 2 },
  ]);
  expect(successWithin([], 'tokens', [16], 0.95)).toEqual([]);
});

test('limits double up to the most there can be', () => {
  expect(doublings(16, 160)).toEqual([16, 32, 64, 128, 160]);
  expect(doublings(16, 16)).toEqual([16]);
  expect(doublings(16, 5)).toEqual([5]);
});

test('a difference is of the tasks that both have, by their coordinates and not by their order', () => {
  const first = [task(0, [sample(true)]), task(1, [sample(true), sample(false)]), task(2, [sample(false)])];
  const second = [task(3, [sample(true)]), task(2, [sample(true)]), task(1, [sample(false), sample(null)])];
  expect(differenceOf(first, second, 0.95)).toMatchObject({
    n: 2,
    mean: (0.5 - 1) / 2,
    first: 1,
    second: 1,
    equal: 0,
  });
  expect(differenceOf(first, [task(9, [sample(true)])], 0.95)).toBeNull();
  expect(differenceOf(first, first, 0.95)).toMatchObject({ n: 3, mean: 0, equal: 3 });
});
