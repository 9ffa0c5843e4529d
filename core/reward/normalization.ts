import type { Outcome, TruncatedRule } from '../episode/outcome.ts';
import { trainableReward } from '../episode/outcome.ts';
import type { RolloutGroup } from '../episode/episode.ts';
import { deviationOf, isRounding, meanOf } from '../statistics/standardized.ts';

/** What the rewards of one environment are brought to one scale by: (reward − mean) / deviation. */
export interface RewardScale {
  mean: number;
  /** Standard deviation of the sample; 1 where all rewards are equal, so that they are not blown up. */
  deviation: number;
}

/** Of the rewards of a step, so that nothing has to be remembered. */
export interface EnvironmentScale extends RewardScale {
  environment: string;
  /** Episodes with a trainable reward. */
  episodes: number;
}

/** Leaves a reward as it is, to the bit. */
export const NO_SCALE: RewardScale = { mean: 0, deviation: 1 };

/**
 * The scale of every environment that a step has rewards of, by name. In a stage of several environments the one whose
 * rewards are spread widest would decide the updates; (r − mean) / deviation within each of them makes all count alike
 * (the per-task normalization of PopArt, Hessel et al. 2018, by the statistics of a step in place of running ones).
 */
export function rewardScales(
  groups: readonly Pick<RolloutGroup, 'tasks' | 'episodes'>[],
  truncated: TruncatedRule,
): EnvironmentScale[] {
  const byEnvironment = new Map<string, number[]>();
  for (const { tasks, episodes } of groups) {
    for (const { task, outcome } of episodes) {
      const reward = outcome ? trainableReward(outcome, truncated) : null;
      if (reward === null) continue;
      const { environment } = tasks[task]!.ref;
      const rewards = byEnvironment.get(environment);
      if (rewards) rewards.push(reward);
      else byEnvironment.set(environment, [reward]);
    }
  }
  return [...byEnvironment]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([environment, rewards]) => ({ environment, ...momentsOf(rewards) }));
}

/** In ascending order, so that the order of episodes does not even change the rounding. */
function momentsOf(rewards: readonly number[]): Omit<EnvironmentScale, 'environment'> {
  const sorted = rewards.toSorted((a, b) => a - b);
  const deviation = deviationOf(sorted);
  return {
    episodes: sorted.length,
    mean: meanOf(sorted),
    deviation: isRounding(deviation) ? 1 : deviation,
  };
}

/** `trainableReward` on a scale. */
export function scaledOutcome(
  outcome: Outcome,
  truncated: TruncatedRule,
  { mean, deviation }: RewardScale,
): number | null {
  const reward = trainableReward(outcome, truncated);
  return reward === null ? null : (reward - mean) / deviation;
}
