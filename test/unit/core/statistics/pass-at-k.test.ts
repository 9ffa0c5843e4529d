import { describe, expect, test } from 'vitest';
import { RandomStream } from '../../../../core/random.ts';
import { passAtK, passHatK, triesOf } from '../../../../core/statistics/pass-at-k.ts';
import type { Tries } from '../../../../core/statistics/pass-at-k.ts';

/** All subsets of k of n samples, of which the first c are right. */
function subsets(samples: number, k: number): number[][] {
  if (k === 0) return [[]];
  return Array.from({ length: samples }, (_, last) => last).flatMap((last) =>
    subsets(last, k - 1).map((rest) => [...rest, last]),
  );
}

const cases = [1, 2, 3, 5, 8].flatMap((samples) =>
  Array.from({ length: samples + 1 }, (_, solved) =>
    Array.from({ length: samples }, (_, i) => ({ samples, solved, k: i + 1 })),
  ).flat(),
);

test('of one task they are the parts of all subsets of k samples with one right, and with all', () => {
  for (const { samples, solved, k } of cases) {
    const drawn = subsets(samples, k);
    const some = drawn.filter((subset) => subset.some((sample) => sample < solved)).length / drawn.length;
    const all = drawn.filter((subset) => subset.every((sample) => sample < solved)).length / drawn.length;
    const tries = { [triesOf(solved, samples)]: 1 };
    expect(passAtK(tries, k, 0.95)!.mean).toBeCloseTo(some, 12);
    expect(passHatK(tries, k, 0.95)!.mean).toBeCloseTo(all, 12);
  }
});

test('the example of Chen et al. 2021: 1 − C(n − c, k) / C(n, k)', () => {
  // C(195, 10) / C(200, 10) = (190 · … · 186) / (200 · … · 196).
  const none = (190 * 189 * 188 * 187 * 186) / (200 * 199 * 198 * 197 * 196);
  expect(passAtK({ '5/200': 1 }, 10, 0.95)!.mean).toBeCloseTo(1 - none, 12);
});

describe('over tasks', () => {
  test('they are means, of those alone that have samples enough', () => {
    const tries: Tries = { '0/4': 1, '2/4': 2, '4/4': 1, '1/1': 10 };
    expect(passAtK(tries, 2, 0.95)).toMatchObject({ n: 4, mean: (0 + 2 * (5 / 6) + 1) / 4 });
    expect(passHatK(tries, 2, 0.95)).toMatchObject({ n: 4, mean: (0 + 2 * (1 / 6) + 1) / 4 });
    expect(passAtK(tries, 1, 0.95)!.n).toBe(14);
    expect(passAtK({ '1/1': 3 }, 2, 0.95)).toBeNull();
    expect(passAtK({}, 1, 0.95)).toBeNull();
    // No task was solved, which does not show that none can be.
    expect(passHatK({ '0/4': 10 }, 2, 0.95)).toMatchObject({
      mean: 0,
      low: 0,
      high: expect.closeTo(0.278, 3),
    });
  });

  test('estimates from more samples than k have no bias, and their intervals hold', () => {
    const random = new RandomStream('pass at k');
    const [tasks, samples, k, runs] = [60, 6, 3, 300];
    let covered = 0;
    let sum = 0;
    // Chances of success that differ from task to task, uniformly: E[1 − (1 − p)³] = 3/4.
    for (let run = 0; run < runs; run++) {
      const tries: Tries = {};
      for (let task = 0; task < tasks; task++) {
        const chance = random.uniform();
        let solved = 0;
        for (let i = 0; i < samples; i++) solved += Number(random.uniform() < chance);
        tries[triesOf(solved, samples)] = (tries[triesOf(solved, samples)] ?? 0) + 1;
      }
      const { mean, low, high } = passAtK(tries, k, 0.95)!;
      sum += mean;
      if (low <= 0.75 && 0.75 <= high) covered++;
    }
    expect(sum / runs).toBeCloseTo(0.75, 2);
    // 0.95, less two standard errors of so many runs.
    expect(covered / runs).toBeGreaterThan(0.925);
  });
});
