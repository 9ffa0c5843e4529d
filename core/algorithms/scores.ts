import type { Episode } from '../episode/episode.ts';
import type { RewardSpec } from '../schema/reward.ts';
import { isTrainable } from './sample.ts';
import type { Sample } from './sample.ts';
import type { TaskGroup } from './task-group.ts';

/**
 * What must be known of each sampled token before advantages are computed, under weights that are not those that sampled:
 * `values` of the critic, log-probs under the `reference`, and under the `policy` that the step starts from.
 */
export type Score = 'values' | 'reference' | 'policy';

/**
 * Scores of sampled tokens, by name: one entry for each token of the completions, end to end in the order of the groups,
 * their tasks and episodes, of those episodes that have a trainable reward.
 */
export type TokenScores = Partial<Record<Score, Float32Array>>;

/** Throws RangeError where the scores are of other episodes than these. */
export function scoresByEpisode(
  groups: readonly TaskGroup<Episode>[],
  reward: RewardSpec,
  scores: TokenScores,
): Map<Episode, Sample['scores']> {
  const of = new Map<Episode, Sample['scores']>();
  const named = Object.entries(scores);
  if (named.length === 0) return of;
  let at = 0;
  for (const episode of groups.flatMap(({ samples }) => samples)) {
    if (!isTrainable(episode, reward)) continue;
    const end = at + episode.tokens.length;
    of.set(episode, Object.fromEntries(named.map(([name, values]) => [name, values.subarray(at, end)])));
    at = end;
  }
  for (const [name, values] of named) {
    if (values.length !== at) throw new RangeError(`${values.length} ${name} for ${at} tokens`);
  }
  return of;
}
