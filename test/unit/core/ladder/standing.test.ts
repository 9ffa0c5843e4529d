import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { addPairs, noCalibration, predict } from '../../../../core/ladder/calibration.ts';
import type { Calibration } from '../../../../core/ladder/calibration.ts';
import type { AbstentionRule, LadderTier, TierScore, TierScores } from '../../../../core/ladder/policy.ts';
import { standingOf } from '../../../../core/ladder/standing.ts';
import { RandomStream } from '../../../../core/random.ts';

const tierOf = (tier: LadderTier['tier'], passAtLeast: number, abstains: AbstentionRule): LadderTier => ({
  verifier: tier,
  tier,
  passAtLeast,
  escalate: { valueAtLeast: 1, uncertaintyAtLeast: 1 },
  abstains,
});
const ladder = (
  abstains: AbstentionRule = 'abstained',
  calibrations = [noCalibration(), noCalibration()],
) => ({
  rungs: [
    tierOf('fast', 1, abstains),
    tierOf('simulation', 0.5, abstains),
    tierOf('high-fidelity', 0.9, abstains),
  ],
  calibrations,
});
const pairs = (from: number, ...points: [number, number][]): Calibration =>
  addPairs(
    noCalibration(),
    points.map(([cheap, dear]) => ({ cheap, dear, cheapPassed: cheap >= from, dearPassed: dear >= 0.5 })),
  );
const worthOf = (scores: TierScores, on = ladder()): number => {
  const standing = standingOf(scores, on);
  if (standing?.kind !== 'judged') throw new Error(`nothing is known: ${JSON.stringify(standing)}`);
  return standing.worth;
};

describe('a candidate that a tier passed and the next one cannot judge', () => {
  test.each<[AbstentionRule, TierScore, object]>([
    ['abstained', 'abstained', { kind: 'abstained', tier: 1, ofSubject: true }],
    ['abstained', 'passing', { kind: 'abstained', tier: 1, ofSubject: false }],
    ['zero', 'abstained', { kind: 'judged', worth: 0, passed: false }],
    // A crash is nobody's fault.
    ['zero', 'passing', { kind: 'abstained', tier: 1, ofSubject: false }],
    ['expected', 'abstained', { kind: 'judged', passed: false }],
    ['expected', 'passing', { kind: 'judged', passed: false }],
  ])('by the rule "%s", where it is %s, earns nothing for looking right', (rule, score, standing) => {
    for (const above of [undefined, score, 'nothing to ask'] as const) {
      expect(standingOf([1, score, above], ladder(rule))).toMatchObject(standing);
    }
  });

  test('is worth what others like it were judged to be, where the spec says so', () => {
    const known = pairs(
      1,
      ...Array.from({ length: 200 }, (_, i): [number, number] => [1, i % 2 ? 0.5 : 0.1]),
    );
    expect(worthOf([1, 'abstained'], ladder('expected', [known, noCalibration()]))).toBeCloseTo(0.3, 2);
  });

  test('counts as it is judged by a tier further up', () => {
    expect(standingOf([1, 'abstained', 0.95], ladder())).toEqual({
      kind: 'judged',
      tier: 2,
      worth: 0.95,
      passed: true,
    });
  });

  test('keeps the verdict of the tier below where there is nothing to ask, or where that one rejected it', () => {
    expect(standingOf([1, 'nothing to ask', 'nothing to ask'], ladder())).toMatchObject({
      tier: 0,
      passed: true,
    });
    expect(standingOf([1, 0.4, 'abstained'], ladder())).toMatchObject({
      kind: 'judged',
      tier: 1,
      passed: false,
    });
    expect(standingOf(['abstained', 'abstained', undefined], ladder())).toBeNull();
  });
});

describe('candidates judged by different tiers', () => {
  // The cheaper one promises 0.723 of what the higher one calls 0.005.
  const random = new RandomStream(1, 'pairs');
  const points = Array.from({ length: 300 }, (): [number, number] => {
    const cheap = 0.4 + 0.6 * random.uniform();
    return [cheap, Math.max(0, Math.min(1, 0.6 * cheap - 0.2 + 0.1 * (random.uniform() - 0.5)))];
  });
  const on = ladder('abstained', [noCalibration(), pairs(0.5, ...points)]);

  test('are compared by what the dearest one is expected to say, which is right in the mean', () => {
    let [judged, expected] = [0, 0];
    for (const [cheap, dear] of points.filter(([cheap]) => cheap >= 0.5)) {
      judged += worthOf([1, cheap, dear], on);
      expected += worthOf([1, cheap, undefined], on);
    }
    expect(expected / 250).toBeCloseTo(judged / 250, 2);
    // As if by one scale they differ by more than the deviation of either.
    expect(worthOf([1, 0.723, undefined], on)).toBeCloseTo(0.6 * 0.723 - 0.2, 1);
  });

  // The middle tier sends up only what it passes, which all turns out good.
  test.each([
    ['much of it hopeless', 0.5, 0.1],
    ['most of it hopeless', 0.1, 0.1],
    ['most of it nearly good enough', 0.1, 0.4],
  ])(
    'and that is no more than those who were asked about count for in the mean: %s',
    (_, good, otherwise) => {
      const drawn = Array.from({ length: 400 }, () => {
        const cheap = 0.6 + 0.3 * random.uniform();
        const middle = random.uniform() < good ? 0.6 + 0.3 * random.uniform() : otherwise;
        return { cheap, middle, dear: 0.85 + 0.1 * random.uniform() };
      });
      const { rungs: tiers } = ladder();
      const passing = drawn.filter(({ middle }) => middle >= 0.5);
      const chained = {
        rungs: [{ ...tiers[0]!, passAtLeast: 0.5 }, tiers[1]!, { ...tiers[2]!, passAtLeast: 0.5 }],
        calibrations: [
          pairs(0.5, ...drawn.map(({ cheap, middle }): [number, number] => [cheap, middle])),
          pairs(0.5, ...passing.map(({ middle, dear }): [number, number] => [middle, dear])),
        ],
      };
      const mean = (scores: (one: (typeof drawn)[number]) => TierScores) =>
        drawn.reduce((sum, one) => sum + worthOf(scores(one), chained), 0) / drawn.length;
      const judged = mean(({ cheap, middle, dear }) => [cheap, middle, middle < 0.5 ? undefined : dear]);
      const unasked = mean(({ cheap }) => [cheap, undefined, undefined]);
      expect(Math.abs(unasked - judged)).toBeLessThan(0.06);
    },
  );

  test('keep their score where nothing is known of the tiers above, and at the top', () => {
    const score = fc.double({ min: 0, max: 1, noNaN: true });
    fc.assert(
      fc.property(score, score, (cheap, dear) => {
        expect(worthOf([1, cheap, undefined])).toBe(cheap);
        expect(worthOf([1, cheap, dear], on)).toBe(dear);
      }),
    );
  });

  test('what was rejected is worth no more than it was said to be, whatever a line through what passed makes of it', () => {
    // All that passed was judged good: the line says 0.2 of nothing at all.
    const kind = pairs(1, ...Array.from({ length: 100 }, (): [number, number] => [1, 0.95]));
    const generous = ladder('abstained', [
      pairs(1, ...Array.from({ length: 40 }, (): [number, number] => [0.6, 1])),
      kind,
    ]);
    expect(predict(generous.calibrations[0]!, 0).mean).toBeGreaterThan(0.2);
    expect(worthOf([0, undefined, undefined], generous)).toBe(0);
    fc.assert(
      fc.property(fc.double({ min: 0, max: 0.99, noNaN: true }), (score) => {
        expect(worthOf([score, undefined, undefined], generous)).toBeLessThanOrEqual(score);
      }),
    );
  });

  test('are never worth less than nothing nor more than all, however few and odd the pairs are', () => {
    const point = fc.tuple(
      fc.double({ min: 0, max: 1, noNaN: true }),
      fc.double({ min: 0, max: 1, noNaN: true }),
    );
    const score = fc.double({ min: 0, max: 1, noNaN: true });
    fc.assert(
      fc.property(fc.array(point), fc.array(point), score, score, (low, high, first, second) => {
        const odd = ladder('expected', [pairs(1, ...low), pairs(0.5, ...high)]);
        for (const scores of [[first], [1, second], [1, 'abstained']] as TierScores[]) {
          expect(worthOf(scores, odd)).toBeGreaterThanOrEqual(0);
          expect(worthOf(scores, odd)).toBeLessThanOrEqual(1);
        }
      }),
    );
  });
});
