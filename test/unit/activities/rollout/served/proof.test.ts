import { describe, expect, test } from 'vitest';
import { compareProbe, whyNotNew } from '../../../../../activities/rollout/served/proof.ts';
import { normal, randomKey } from '../../../../../core/random.ts';

const noise = (name: string, size: number) =>
  Array.from({ length: 255 }, (_, i) => size * normal(randomKey(name), i));
const plus = (a: readonly number[], b: readonly number[]) => a.map((value, i) => value + b[i]!);

const before = noise('weights', 2).map((value) => -Math.abs(value));
const step = noise('update', 0.01);
const now = plus(before, step);
/** What another engine rounds, as bfloat16 does. */
const rounding = noise('rounding', 0.005);

describe('a server that is given new weights', () => {
  test('and computes with them is believed', () => {
    expect(whyNotNew(compareProbe(plus(now, rounding), now, before), 0.02)).toBeNull();
  });

  test('and goes on with the old ones is found out, although both are within the tolerance', () => {
    const old = compareProbe(plus(before, rounding), now, before);
    expect(old.gap).toBeLessThan(0.02);
    expect(old.towardsOld!.at).toBeCloseTo(1, 1);
    expect(whyNotNew(old, 0.02)).toMatch('those of the weights before');
  });

  test('and computes with quite other ones is refused by the gap', () => {
    expect(whyNotNew(compareProbe(noise('other', 2), now, before), 0.02)).toMatch('nats from the learner');
  });

  test('and answers what is no number is refused', () => {
    expect(
      whyNotNew(
        compareProbe(
          now.map(() => Number.NaN),
          now,
          before,
        ),
        0.02,
      ),
    ).not.toBeNull();
  });

  test('of an update that is less than the rounding is believed, for nothing tells them apart', () => {
    const hardly = plus(
      before,
      step.map((value) => value / 1000),
    );
    const compared = compareProbe(plus(before, rounding), hardly, before);
    expect(compared.towardsOld!.error).toBeGreaterThan(0.125);
    expect(whyNotNew(compared, 0.02)).toBeNull();
  });

  test('is wrongly refused in fewer than one of a thousand hand-overs, whatever the size of the update', () => {
    let refused = 0;
    for (let i = 0; i < 2000; i++) {
      const size = 10 ** (-4 + (i % 5));
      const update = noise(`update ${i}`, size);
      const served = plus(plus(before, update), noise(`rounding ${i}`, 0.005));
      if (whyNotNew(compareProbe(served, plus(before, update), before), 0.02) !== null) refused++;
    }
    expect(refused).toBeLessThan(2);
  });
});

test('without weights before there is nothing to be told apart from', () => {
  expect(compareProbe(now, now, null)).toEqual({ gap: 0, towardsOld: null });
  expect(compareProbe(now, now, now)).toEqual({ gap: 0, towardsOld: null });
});
