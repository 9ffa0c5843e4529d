import { effectiveSamples } from '../../core/algorithms/effective-samples.ts';
import { isTrainable } from '../../core/algorithms/sample.ts';
import type { RolloutGroup } from '../../core/episode/episode.ts';
import type { BlobRef } from '../../core/refs.ts';
import type { KeepReplayedRequest, ReplayRequest } from '../../core/requests.ts';
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
 * sample size of `minEffectiveSamples` of their sampled tokens or more. First writer wins.
 */
export async function keepReplayed(
  store: ObjectStore,
  { run, stage, step, groups, scores: scored, minEffectiveSamples, reward }: KeepReplayedRequest,
  signal: AbortSignal,
): Promise<number[]> {
  const effective = scored && (await measured());
  const near = groups.flatMap((ref, place) =>
    (effective?.[place] ?? 1) >= minEffectiveSamples ? [{ ref, place }] : [],
  );
  const kept = await keepReplayedGroups(
    store,
    { run, stage, step },
    { groups: near, ...(effective && { effectiveSamples: effective }) },
    { signal },
  );
  return kept.groups.map(({ place }) => place);

  /** Of each group: scores are end to end, over the completions of episodes that have a reward. */
  async function measured(): Promise<number[]> {
    const { policy } = await store.read(scored!, scoresCodec, { signal });
    let at = 0;
    const all: number[] = [];
    for (const ref of groups) {
      const logRatios: number[] = [];
      const { episodes } = await loadTrajectories(store, ref, { signal });
      for (const episode of episodes) {
        if (!isTrainable(episode, reward)) continue;
        episode.mask.forEach((bit, i) => {
          if (bit === 1) logRatios.push(policy![at + i]! - episode.samplerLogprobs[i]!);
        });
        at += episode.tokens.length;
      }
      all.push(effectiveSamples(logRatios));
    }
    return all;
  }
}
