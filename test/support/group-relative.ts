import { grpo } from '../../core/algorithms/grpo.ts';
import { taskGroup } from './task-group.ts';

/** Advantages of the samples of one group with these rewards, as GRPO has them; null where a sample has none. */
export function groupRelative(
  rewards: readonly (number | null)[],
  scale: 'group' | 'none',
  leastDeviation?: number,
): (number | null)[] {
  const samples = rewards.map((reward) => ({
    reward,
    success: null,
    tokens: [1],
    samplerLogprobs: [0],
    mask: [1 as const],
    turns: [],
    before: [],
    scores: {},
    truncated: false,
  }));
  const spec = grpo.schema.parse({ kind: 'grpo', scaleRewards: scale, leastDeviation });
  const all = grpo.advantages([taskGroup(samples)], spec);
  return rewards.map((_, i) => all.find(({ sample }) => sample === i)?.advantages[0] ?? null);
}
