import { effectiveSamples } from '../../core/algorithms/effective-samples.ts';
import { isTrainable } from '../../core/algorithms/sample.ts';
import { succeeded } from '../../core/episode/reward.ts';
import type { RolloutGroup } from '../../core/episode/episode.ts';
import type { BlobRef } from '../../core/refs.ts';
import type { KeepReplayedRequest, ReplayRequest } from '../../core/requests/collect.ts';
import { inParallel } from '../../store/in-parallel.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';
import { loadTrajectories } from '../../store/rollout/trajectories.ts';
import { keepReplayedGroups, putReplayedCopy } from '../../store/training/replayed-groups.ts';
import { scoresCodec } from '../../store/training/scores.ts';

/** Copies the groups that a step would replay, each alone in an object, as it was when it was trained first. */
export async function replayGroups(
  store: ObjectStore,
  { run, stage, step, groups }: ReplayRequest,
  signal: AbortSignal,
): Promise<BlobRef[]> {
  const places = groups.map((one, place) => ({ ...one, place }));
  return inParallel(places, async ({ ref, task, place }) => {
    const source = await loadTrajectories(store, ref, { signal });
    const copy = alone(source, task, `replayed-${place}`);
    return (await putReplayedCopy(store, { run, stage, step }, copy, { signal })).ref;
  });
}

/** One task of a group, with all of its samples. */
const alone = (group: RolloutGroup, task: number, id: string): RolloutGroup => ({
  ...group,
  id,
  tasks: [group.tasks[task]!],
  episodes: group.episodes
    .filter((episode) => episode.task === task)
    .map((episode) => ({ ...episode, task: 0 })),
});

/**
 * Keeps which of the copies a step replays, and returns their places: those whose importance weights have an effective
 * sample size of `minEffectiveSamples` of their sampled tokens or more, and whose successes are as probable as `successes`
 * asks for. First writer wins.
 */
export async function keepReplayed(
  store: ObjectStore,
  { run, stage, step, groups, scores: scored, minEffectiveSamples, successes, reward }: KeepReplayedRequest,
  signal: AbortSignal,
): Promise<number[]> {
  const { effective, probabilities } = (scored && (await measured())) ?? {};
  const isNear = (place: number): boolean =>
    (effective?.[place] ?? 1) >= minEffectiveSamples &&
    (!successes || !probabilities || isWithin(probabilities[place]!, successes));
  const near = groups.flatMap((ref, place) => (isNear(place) ? [{ ref, place }] : []));
  const kept = await keepReplayedGroups(
    store,
    { run, stage, step },
    {
      groups: near,
      ...(effective && { effectiveSamples: effective }),
      ...(successes && probabilities && { successes: probabilities }),
    },
    { signal },
  );
  return kept.groups.map(({ place }) => place);

  /** Of each group: scores are end to end, over the completions of episodes that have a reward. */
  async function measured(): Promise<{ effective: number[]; probabilities: (number | null)[] }> {
    const { policy } = await store.read(scored!, scoresCodec, { signal });
    let at = 0;
    const effective: number[] = [];
    const probabilities: (number | null)[] = [];
    for (const ref of groups) {
      const logRatios: number[] = [];
      const ofSuccesses: number[] = [];
      const { episodes } = await loadTrajectories(store, ref, { signal });
      for (const episode of episodes) {
        if (!isTrainable(episode, reward)) continue;
        const solved = succeeded(reward.components, episode.outcome!) === true;
        episode.mask.forEach((bit, i) => {
          if (bit === 0) return;
          logRatios.push(policy![at + i]! - episode.samplerLogprobs[i]!);
          if (solved) ofSuccesses.push(policy![at + i]!);
        });
        at += episode.tokens.length;
      }
      effective.push(effectiveSamples(logRatios));
      probabilities.push(probabilityOf(ofSuccesses));
    }
    return { effective, probabilities };
  }
}

/** Of a token, as a geometric mean; null where there is none. */
const probabilityOf = (logprobs: readonly number[]): number | null =>
  logprobs.length === 0 ? null : Math.exp(logprobs.reduce((sum, one) => sum + one, 0) / logprobs.length);

/** Where nothing was solved there is nothing to replay. */
const isWithin = (probability: number | null, { from, to }: { from: number; to: number }): boolean =>
  probability !== null && probability >= from && probability <= to;
