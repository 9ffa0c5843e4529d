import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { chanceOfAtLeast, lowerBound, upperBound } from '../../../../core/statistics/binomial.ts';

const proportion = fc
  .integer({ min: 1, max: 400 })
  .chain((trials) =>
    fc.record({ successes: fc.integer({ min: 0, max: trials }), trials: fc.constant(trials) }),
  );

describe('the chance of so many successes', () => {
  test('is what counting all outcomes gives', () => {
    // 3 of 4 and 4 of 4 at 0.3: 4 · 0.027 · 0.7 + 0.0081.
    expect(chanceOfAtLeast({ successes: 3, trials: 4 }, 0.3)).toBeCloseTo(0.0837, 12);
    expect(chanceOfAtLeast({ successes: 1, trials: 4 }, 0.3)).toBeCloseTo(1 - 0.7 ** 4, 12);
    expect(chanceOfAtLeast({ successes: 10, trials: 10 }, 0.9)).toBeCloseTo(0.9 ** 10, 12);
  });

  test('falls with every success more, from 1 to 0, and mirrors that of failures', () => {
    fc.assert(
      fc.property(proportion, fc.double({ min: 0.001, max: 0.999, noNaN: true }), (p, chance) => {
        const { successes, trials } = p;
        const here = chanceOfAtLeast(p, chance);
        expect(chanceOfAtLeast({ successes: successes + 1, trials }, chance)).toBeLessThanOrEqual(
          here + 1e-12,
        );
        expect(here + chanceOfAtLeast({ successes: trials - successes + 1, trials }, 1 - chance)).toBeCloseTo(
          1,
          9,
        );
      }),
    );
    expect(chanceOfAtLeast({ successes: 0, trials: 5 }, 0)).toBe(1);
    expect(chanceOfAtLeast({ successes: 5, trials: 5 }, 1)).toBe(1);
    expect(chanceOfAtLeast({ successes: 1, trials: 5 }, 0)).toBe(0);
    expect(chanceOfAtLeast({ successes: 6, trials: 5 }, 0.5)).toBe(0);
  });
});

describe('the exact bounds', () => {
  test('are those of the tables', () => {
    // Clopper & Pearson's interval for 8 of 10 at 95 %, and the rule of three for none of 300.
    expect(lowerBound({ successes: 8, trials: 10 }, 0.025)).toBeCloseTo(0.4439, 4);
    expect(upperBound({ successes: 8, trials: 10 }, 0.025)).toBeCloseTo(0.9748, 4);
    expect(upperBound({ successes: 0, trials: 300 }, 0.05)).toBeCloseTo(1 - 0.05 ** (1 / 300), 9);
    expect([
      lowerBound({ successes: 0, trials: 0 }, 0.1),
      upperBound({ successes: 0, trials: 0 }, 0.1),
    ]).toEqual([0, 1]);
  });

  test('are where what was seen, or more of it, has the chance that the error says', () => {
    fc.assert(
      fc.property(proportion, fc.double({ min: 1e-6, max: 0.4, noNaN: true }), (p, error) => {
        const bound = lowerBound(p, error);
        expect(bound).toBeLessThanOrEqual(p.successes / p.trials);
        if (p.successes > 0) expect(chanceOfAtLeast(p, bound) / error).toBeCloseTo(1, 4);
      }),
    );
  });
});
