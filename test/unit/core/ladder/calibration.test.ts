import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { addPairs, agreement, noCalibration, predict } from '../../../../core/ladder/calibration.ts';
import type { ScorePair } from '../../../../core/ladder/calibration.ts';
import { RandomStream } from '../../../../core/random.ts';

const pair = (cheap: number, dear: number): ScorePair => ({
  cheap,
  dear,
  cheapPassed: cheap >= 0.5,
  dearPassed: dear >= 0.5,
});

/** dear = 0.1 + 0.6 · cheap, give or take 0.05 (uniform: a deviation of 0.0289). */
function pairs(count: number): ScorePair[] {
  const random = new RandomStream(1, 'pairs');
  return Array.from({ length: count }, () => {
    const cheap = random.uniform();
    return pair(cheap, 0.1 + 0.6 * cheap + 0.1 * (random.uniform() - 0.5));
  });
}

test('before any pair the higher tier is expected to say the same, with much uncertainty', () => {
  const { mean, deviation } = predict(noCalibration(), 0.7);
  expect(mean).toBeCloseTo(0.7, 12);
  expect(deviation).toBeGreaterThan(0.3);
});

test('with pairs the bias of the lower tier and its scatter are found', () => {
  const { mean, deviation } = predict(addPairs(noCalibration(), pairs(2000)), 0.5);
  expect(mean).toBeCloseTo(0.4, 2);
  expect(deviation).toBeCloseTo(0.1 / Math.sqrt(12), 2);
});

test('the uncertainty falls with the number of pairs, and is larger far from where they lie', () => {
  const narrow = pairs(40).map(({ cheap }) => pair(0.4 + 0.1 * cheap, 0.3 + 0.1 * cheap));
  const few = addPairs(noCalibration(), narrow.slice(0, 5));
  const many = addPairs(noCalibration(), narrow);
  expect(predict(many, 0.45).deviation).toBeLessThan(predict(few, 0.45).deviation);
  expect(predict(many, 1).deviation).toBeGreaterThan(predict(many, 0.45).deviation);
});

test('the sums do not depend on the order of the pairs, to the bit', () => {
  const unit = fc.double({ min: 0, max: 1, noNaN: true });
  const many = fc.array(fc.tuple(unit, unit).map(([a, b]) => pair(a, b)));
  fc.assert(
    fc.property(many, (all) => {
      expect(addPairs(noCalibration(), all.toReversed())).toEqual(addPairs(noCalibration(), all));
      const { deviation, mean } = predict(addPairs(noCalibration(), all), 0.5);
      expect(Number.isFinite(mean) && deviation > 0).toBe(true);
    }),
  );
});

test('agreement is a share with its uncertainty, by what the lower tier said', () => {
  const known = addPairs(noCalibration(), [pair(0.9, 0.9), pair(0.8, 0.7), pair(0.7, 0.1), pair(0.1, 0.2)]);
  expect(agreement(known, true).mean).toBeCloseTo(3 / 5);
  expect(agreement(known, false).mean).toBeCloseTo(1 / 3);
  expect(agreement(noCalibration(), true)).toEqual({ mean: 0.5, deviation: Math.sqrt(1 / 12) });
});
