import { describe, expect, test } from 'vitest';
import { RandomStream } from '../../../../core/random.ts';
import { pairedDifference } from '../../../../core/statistics/paired-difference.ts';

const pairs = (first: number, second: number, equal: number): number[] => [
  ...Array.from({ length: first }, () => 1),
  ...Array.from({ length: second }, () => -1),
  ...Array.from({ length: equal }, () => 0),
];

test('of single samples it is the interval of Agresti and Min, with half a pair in each of the four cells', () => {
  const [b, c, n] = [12.5, 3.5, 52];
  const error = Math.sqrt(b + c - (b - c) ** 2 / n) / n;
  expect(pairedDifference(pairs(12, 3, 35), 0.95)).toEqual({
    mean: 9 / 50,
    n: 50,
    low: expect.closeTo(9 / 52 - 1.959964 * error, 6),
    high: expect.closeTo(9 / 52 + 1.959964 * error, 6),
  });
  // By hand: 0.173077 ± 1.959964 × 0.073083.
  expect(pairedDifference(pairs(12, 3, 35), 0.95)).toMatchObject({
    low: expect.closeTo(0.02984, 4),
    high: expect.closeTo(0.31632, 4),
  });
});

test('that two have never differed does not show that they cannot', () => {
  const { low, high } = pairedDifference(pairs(0, 0, 20), 0.95)!;
  expect(low).toBeCloseTo(-high, 12);
  expect(high).toBeGreaterThan(0.05);
  expect(pairedDifference([], 0.95)).toBeNull();
  expect(pairedDifference([1], 0.95)).toMatchObject({ n: 1, mean: 1, high: 1 });
});

describe('simulated', () => {
  /** The part of intervals that hold the true difference, where tasks are hard for both models alike. */
  function covered(tasks: number, samples: number, gap: number): number {
    const random = new RandomStream('paired', tasks, samples, gap);
    const runs = 2000;
    let held = 0;
    for (let run = 0; run < runs; run++) {
      const differences = Array.from({ length: tasks }, () => {
        const ease = random.uniform() * (1 - gap);
        const solved = (chance: number): number =>
          Array.from({ length: samples }, () => Number(random.uniform() < chance)).reduce(
            (a, b) => a + b,
            0,
          ) / samples;
        return solved(ease + gap) - solved(ease);
      });
      const { low, high } = pairedDifference(differences, 0.95)!;
      held += Number(low <= gap && gap <= high);
    }
    return held / runs;
  }

  test.each([
    [30, 1, 0],
    [30, 1, 0.2],
    [100, 1, 0.1],
    [30, 4, 0],
    [30, 4, 0.3],
    [200, 8, 0.05],
  ])('of %i tasks × %i with a difference of %d, 95 % intervals hold it', (tasks, samples, gap) => {
    expect(covered(tasks, samples, gap)).toBeGreaterThan(0.935);
  });

  test('tasks that both find hard make the paired interval narrower than that of independent ones', () => {
    const random = new RandomStream('paired and not');
    const both = Array.from({ length: 300 }, () => {
      const easy = random.uniform() < 0.5;
      return [Number(easy || random.uniform() < 0.1), Number(easy && random.uniform() < 0.9)] as const;
    });
    const { low, high } = pairedDifference(
      both.map(([a, b]) => a - b),
      0.95,
    )!;
    const scatter = both.reduce((sum, [a, b]) => sum + (a - 0.5) ** 2 + (b - 0.5) ** 2, 0) / 300;
    expect(high - low).toBeLessThan(0.7 * 2 * 1.96 * Math.sqrt(scatter / 300));
  });
});
