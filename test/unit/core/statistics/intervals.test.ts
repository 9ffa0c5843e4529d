import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { normalQuantile, rate, wilson } from '../../../../core/statistics/intervals.ts';

const proportion = fc
  .integer({ min: 1, max: 5000 })
  .chain((trials) => fc.record({ trials: fc.constant(trials), successes: fc.nat(trials) }));
const confidence = fc.double({ min: 0.5, max: 0.9999, noNaN: true });

describe("Wilson's interval", () => {
  // Newcombe 1998 (Statistics in Medicine 17, 857-872), table I, method 3, 95 %.
  test.each([
    [81, 263, 0.2553, 0.3662],
    [15, 148, 0.0624, 0.1605],
    [0, 20, 0, 0.1611],
    [1, 29, 0.0061, 0.1718],
  ])('of %i in %i is the published one', (successes, trials, low, high) => {
    const interval = wilson({ successes, trials }, 0.95);
    expect(interval.low).toBeCloseTo(low, 4);
    expect(interval.high).toBeCloseTo(high, 4);
  });

  test('lies in [0, 1] around the rate', () => {
    fc.assert(
      fc.property(proportion, confidence, (p, level) => {
        const { low, high } = wilson(p, level);
        expect(low >= 0 && high <= 1).toBe(true);
        expect(low <= rate(p) + 1e-12 && rate(p) <= high + 1e-12).toBe(true);
      }),
    );
  });

  test('its lower bound rises with successes, with trials of the same rate, and falls with confidence', () => {
    fc.assert(
      fc.property(proportion, confidence, (p, level) => {
        const bound = wilson(p, level).low;
        if (p.successes < p.trials) {
          expect(wilson({ ...p, successes: p.successes + 1 }, level).low).toBeGreaterThan(bound);
        }
        const double = { successes: 2 * p.successes, trials: 2 * p.trials };
        expect(wilson(double, level).low).toBeGreaterThanOrEqual(bound - 1e-12);
        expect(wilson(p, level + (1 - level) / 2).low).toBeLessThanOrEqual(bound + 1e-12);
      }),
    );
  });

  test('success and failure mirror each other', () => {
    fc.assert(
      fc.property(proportion, confidence, ({ successes, trials }, level) => {
        const { low, high } = wilson({ successes, trials }, level);
        const mirrored = wilson({ successes: trials - successes, trials }, level);
        expect(mirrored.low).toBeCloseTo(1 - high, 12);
        expect(mirrored.high).toBeCloseTo(1 - low, 12);
      }),
    );
  });

  test('says nothing without trials', () => {
    expect(wilson({ successes: 0, trials: 0 }, 0.95)).toEqual({ low: 0, high: 1 });
  });
});

test.each([
  [0.5, 0],
  [0.9, 1.2815515655446004],
  [0.975, 1.959963984540054],
  [0.999, 3.090232306167813],
  [0.02, -2.053748910631823],
  [1e-6, -4.753424308822899],
])('the normal quantile of %d is the tabulated one', (p, z) => {
  expect(Math.abs(normalQuantile(p) - z)).toBeLessThanOrEqual(1.2e-9 * Math.max(1, Math.abs(z)));
});

test.each([0, 1, -0.1, Number.NaN])('there is no normal quantile of %d', (p) => {
  expect(() => normalQuantile(p)).toThrow(RangeError);
});
