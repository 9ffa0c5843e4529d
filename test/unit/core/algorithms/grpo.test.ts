import { describe, expect, it } from 'vitest';
import { grpo } from '../../../../core/algorithms/grpo.ts';
import { groupRelative } from '../../../support/group-relative.ts';

describe('the least deviation that GRPO divides by', () => {
  it('holds down a group whose rewards hardly differ, and no other', () => {
    const close = [0.5, 0.501];
    const deviation = 0.001 / Math.SQRT2;
    expect(groupRelative(close, 'group')[1]).toBeCloseTo(0.0005 / deviation, 9);
    expect(groupRelative(close, 'group', 0.1)[1]).toBeCloseTo(0.0005 / 0.1, 9);
    expect(groupRelative([0, 1], 'group', 0.1)).toEqual(groupRelative([0, 1], 'group'));
  });

  it('leaves a group of equal rewards without a signal', () => {
    expect(groupRelative([0.1 + 0.2, 0.3], 'group', 0.1)).toEqual([0, 0]);
  });

  it('makes the scale of rewards matter, and does nothing without a division', () => {
    const spec = (over: object) => grpo.schema.parse({ kind: 'grpo', ...over });
    expect(grpo.ignoresScale!(spec({}))).toBe(true);
    expect(grpo.ignoresScale!(spec({ leastDeviation: 0.1 }))).toBe(false);
    const context = { late: false, stored: false, lags: null } as Parameters<
      NonNullable<typeof grpo.refuse>
    >[1];
    const refused = grpo.refuse!(spec({ scaleRewards: 'none', leastDeviation: 0.1 }), context);
    expect(refused).toEqual([{ field: 'leastDeviation', message: expect.stringContaining('leave it out') }]);
  });
});
