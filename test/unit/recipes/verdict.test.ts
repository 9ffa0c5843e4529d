import { expect, test } from 'vitest';
import { RandomStream } from '../../../core/random.ts';
import { judge } from '../../../recipes/verdict.ts';
import type { Verdict } from '../../../recipes/verdict.ts';

/** Box and Muller's normal values. */
const normal = (random: RandomStream): number =>
  Math.sqrt(-2 * Math.log(1 - random.uniform())) * Math.cos(2 * Math.PI * random.uniform());

/** How often each verdict falls where seeds differ by a deviation of 1 and the treatment is better by `gain`. */
function verdicts(gain: number, seeds: number) {
  const trials = 4000;
  const counted: Record<Verdict, number> = { confirmed: 0, 'not confirmed': 0, undecided: 0 };
  const random = new RandomStream(1, 'verdicts', gain, seeds);
  for (let i = 0; i < trials; i++) {
    // Most of what seeds differ by is common to both sides of a pair.
    const common = Array.from({ length: seeds }, () => 10 * normal(random));
    const treatment = common.map((value) => value + gain + normal(random));
    counted[judge(treatment, common).verdict] += 1 / trials;
  }
  return counted;
}

test.each([2, 3, 8])('without a difference one in forty is confirmed, with %i seeds', (seeds) => {
  const { confirmed, 'not confirmed': contrary } = verdicts(0, seeds);
  // Four standard errors of 4,000 trials of 2.5 %.
  expect(Math.abs(confirmed - 0.025)).toBeLessThan(0.01);
  expect(Math.abs(contrary - 0.025)).toBeLessThan(0.01);
});

test('a large gain is mostly confirmed by three seeds, a loss hardly ever', () => {
  expect(verdicts(6, 3).confirmed).toBeGreaterThan(0.9);
  expect(verdicts(-6, 3).confirmed).toBeLessThan(0.001);
  expect(verdicts(-6, 3)['not confirmed']).toBeGreaterThan(0.9);
});

test('one seed decides nothing, nor do seeds that all differ alike', () => {
  expect(judge([1], [0])).toEqual({ verdict: 'undecided', difference: null });
  expect(judge([1, 2], [0, 1]).verdict).toBe('undecided');
  expect(() => judge([1, 2], [0])).toThrow(RangeError);
});

test('where less is claimed, the same differences decide for it', () => {
  const [fewer, more] = [
    [10, 21, 29],
    [30, 40, 50],
  ];
  expect(judge(fewer, more, 'lower')).toMatchObject({ verdict: 'confirmed', difference: { mean: -20 } });
  expect(judge(more, fewer, 'lower').verdict).toBe('not confirmed');
  expect(judge(fewer, more, 'higher').verdict).toBe('not confirmed');
  expect(judge([30, 40, 50], [31, 38, 51], 'lower').verdict).toBe('undecided');
});
