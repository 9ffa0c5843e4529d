import { expect, test } from 'vitest';
import { rewardInWords } from '../../../cli/model-card.ts';
import type { RewardSpec } from '../../../core/schema/reward.ts';

const reward: RewardSpec = {
  components: [
    { verifier: 'exact-match', role: 'outcome', weight: 1, gatedBy: null },
    { verifier: 'format', role: 'bonus', weight: 0.05, gatedBy: 'exact-match' },
  ],
  truncated: 'train',
};

test('a card says what was paid for: verifiers, rules, and that the outcome is not the most of it', () => {
  expect(rewardInWords(reward)).toBe('outcome exact-match × 1, bonus format × 0.05');
  const rules: RewardSpec['rules'] = [
    { kind: 'overlong', limit: 100, buffer: 10, weight: 2, gatedBy: null },
    { kind: 'confidence', weight: 0.5, gatedBy: null },
  ];
  expect(rewardInWords({ ...reward, rules, shapingMayDominate: true })).toBe(
    'outcome exact-match × 1, bonus format × 0.05, penalty rule:overlong × 2, bonus rule:confidence × 0.5; by its spec the outcome weighs less than the rest',
  );
});
