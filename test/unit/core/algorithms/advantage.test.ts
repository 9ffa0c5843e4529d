import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { groupStatistics } from '../../../../core/algorithms/advantage.ts';
import { groupRelative } from '../../../support/group-relative.ts';

const reward = fc.double({ min: -1, max: 2, noNaN: true });
const rewards = fc.array(reward, { minLength: 1, maxLength: 32 });
const scale = fc.constantFrom('group' as const, 'none' as const);

describe('group-relative advantages', () => {
  test('an episode without a reward never changes what the others get', () => {
    const withNulls = fc.array(fc.option(reward, { nil: null, freq: 2 }), { minLength: 1, maxLength: 40 });
    fc.assert(
      fc.property(withNulls, scale, (mixed, scale) => {
        const known = mixed.filter((r) => r !== null);
        const alone = groupRelative(known, scale);
        const together = groupRelative(mixed, scale);
        expect(together.filter((a) => a !== null)).toEqual(alone);
        expect(together.map((a) => a === null)).toEqual(mixed.map((r) => r === null));
        expect(groupStatistics(mixed)).toEqual(groupStatistics(known));
      }),
    );
  });

  test('are those of the paper', () => {
    // (r - mean) / deviation with the sample deviation: mean 0.5, deviation sqrt(1/3).
    const { deviation, degenerate } = groupStatistics([1, 0, 0, 1]);
    const advantages = groupRelative([1, 0, 0, 1], 'group');
    expect(degenerate).toBe(false);
    expect(deviation).toBeCloseTo(Math.sqrt(1 / 3), 12);
    for (const [i, sign] of [1, -1, -1, 1].entries()) {
      expect(advantages[i]).toBeCloseTo((sign * Math.sqrt(3)) / 2, 12);
    }
    expect(groupRelative([1, 0, 0, 1], 'none')).toEqual([0.5, -0.5, -0.5, 0.5]);
  });

  test('sum to nothing, and keep the order of the rewards', () => {
    fc.assert(
      fc.property(rewards, scale, (rewards, scale) => {
        const advantages = groupRelative(rewards, scale);
        const { degenerate } = groupStatistics(rewards);
        expect(Math.abs(advantages.reduce<number>((sum, a) => sum + a!, 0))).toBeLessThan(1e-6);
        if (degenerate) return;
        for (let i = 1; i < rewards.length; i++) {
          const more = rewards[i]! >= rewards[i - 1]!;
          const [less, greater] = more ? [i - 1, i] : [i, i - 1];
          expect(advantages[greater]! >= advantages[less]!).toBe(true);
        }
      }),
    );
  });

  test('divided by the deviation do not depend on the scale of the rewards', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: -8, max: 8 }), { minLength: 2, maxLength: 16 }), (rewards) => {
        const scaled = groupRelative(
          rewards.map((r) => 4 * r + 3),
          'group',
        );
        groupRelative(rewards, 'group').forEach((a, i) => {
          expect(scaled[i]).toBeCloseTo(a!, 9);
        });
      }),
    );
  });

  test.each([
    ['no reward', [null, null]],
    ['one sample', [1]],
    ['one reward among nulls', [null, 0.3, null]],
    ['equal rewards', [0.1, 0.1, 0.1]],
    ['rewards that differ by rounding', [0.1 + 0.2, 0.3, 0.3]],
  ])('%s teaches nothing, and divides by nothing', (_, rewards) => {
    for (const scale of ['group', 'none'] as const) {
      const advantages = groupRelative(rewards, scale);
      const { degenerate } = groupStatistics(rewards);
      expect(degenerate).toBe(true);
      expect(advantages).toEqual(rewards.map((r) => (r === null ? null : 0)));
    }
  });
});
