import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ensembleVerdict } from '../../../../core/reward/ensemble.ts';
import { verdict } from './samples.ts';

const least = { name: 'both', verifiers: ['a', 'b'], by: 'minimum' as const, deviations: 1 };
const careful = { ...least, by: 'mean-deviation' as const };
const of = (...scores: (number | null)[]) =>
  scores.map((score, i) => verdict('abc'[i]!, { score, ...(score === null && { evidence: 'no idea' }) }));

describe('an ensemble', () => {
  test('by minimum is worth what its strictest member says', () => {
    expect(ensembleVerdict(least, of(0.9, 0.2, 1))).toMatchObject({ verifier: 'both', score: 0.2 });
  });

  test('by mean − k · deviation is worth less, the less its members agree', () => {
    expect(ensembleVerdict(careful, of(0.5, 0.5)).score).toBeCloseTo(0.5, 12);
    expect(ensembleVerdict(careful, of(0.6, 0.4)).score).toBeCloseTo(0.5 - 0.1, 12);
    expect(ensembleVerdict({ ...careful, deviations: 3 }, of(0.6, 0.4)).score).toBeCloseTo(0.2, 12);
    expect(ensembleVerdict(careful, of(1, 0, 0)).score).toBe(0);
  });

  test('keeps what each member said, so that it can be composed otherwise', () => {
    const { members, version } = ensembleVerdict(least, of(0.9, 0.2));
    expect(members).toEqual([
      { verifier: 'a', version: '1', score: 0.9 },
      { verifier: 'b', version: '1', score: 0.2 },
    ]);
    expect(version).toBe('minimum of a@1, b@1');
  });

  test('abstains with any of its members: to silence the strict one pays nothing', () => {
    expect(ensembleVerdict(least, of(1, null))).toMatchObject({ score: null, evidence: 'b: no idea' });
    expect(ensembleVerdict(careful, of(null, 1)).score).toBeNull();
  });

  test('never says more than its members at their best, and is full only where all are', () => {
    fc.assert(
      fc.property(
        fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 2, maxLength: 3 }),
        fc.double({ min: 0.01, max: 5, noNaN: true }),
        (scores, deviations) => {
          for (const spec of [least, { ...careful, deviations }]) {
            const { score } = ensembleVerdict(spec, of(...scores));
            expect(score).toBeGreaterThanOrEqual(0);
            expect(score).toBeLessThanOrEqual(Math.max(...scores));
            if (score === 1) expect(Math.min(...scores)).toBeCloseTo(1, 6);
          }
        },
      ),
    );
  });
});
