import { expect, test } from 'vitest';
import { componentsOf } from '../../../../runs/episodes/episode-rows.ts';
import { ruleName } from '../../../../core/reward/rules.ts';
import type { RewardSpec } from '../../../../core/schema/reward.ts';

test('a reward has a part for each verifier and for each rule, by the names that episodes keep them under', () => {
  const rule = { kind: 'confidence', weight: 0.1, gatedBy: null } as NonNullable<RewardSpec['rules']>[number];
  const reward: RewardSpec = {
    components: [{ verifier: 'right', role: 'outcome', weight: 1, gatedBy: null }],
    rules: [rule],
    truncated: 'train',
  };
  expect(componentsOf(reward)).toEqual(['right', ruleName(rule)]);
});
