import { z } from 'zod';
import type { RolloutGroup } from '../../core/episode/episode.ts';
import type { BlobRef } from '../../core/refs.ts';
import { jsonCodec } from '../codec.ts';
import { replayedCopyKey, replayedKey } from '../keys.ts';
import type { CallOptions, ObjectStore, StoredObject } from '../objects/object-store.ts';
import { putTrajectoriesAt } from '../rollout/trajectories.ts';
import type { RolloutPlace } from '../rollout/trajectories.ts';

/** What a step has replayed of the groups that were chosen for it. */
export interface ReplayedGroups {
  /** In the order in which the step learned from them, each with its place among those that were chosen. */
  groups: { ref: BlobRef; place: number }[];
  /** Of each that was chosen, where anybody looked: effective sample size of its importance weights, part of its tokens. */
  effectiveSamples?: number[];
  /** Of each, where somebody asked: probability of a sampled token of its successes, as a geometric mean; null without any. */
  successes?: (number | null)[];
}

const replayed = jsonCodec<ReplayedGroups>(
  'the groups that a step has replayed',
  z.looseObject({
    groups: z.array(z.looseObject({ ref: z.looseObject({ key: z.string() }), place: z.int() })),
    effectiveSamples: z.array(z.number()).optional(),
    successes: z.array(z.number().nullable()).optional(),
  }),
);

/** A copy of a group of an earlier step: the step is whole where that is gone, and nobody takes it for sampled twice. */
export const putReplayedCopy = (
  store: ObjectStore,
  { run, stage, step }: RolloutPlace,
  group: RolloutGroup,
  options: CallOptions = {},
): Promise<StoredObject<RolloutGroup>> =>
  putTrajectoriesAt(store, replayedCopyKey(run, stage, step, group.id), group, options);

/** Keeps what a step replays; first writer wins, and what is kept is returned. */
export async function keepReplayedGroups(
  store: ObjectStore,
  { run, stage, step }: RolloutPlace,
  wanted: ReplayedGroups,
  options: CallOptions = {},
): Promise<ReplayedGroups> {
  return (await store.putIfAbsent(replayedKey(run, stage, step), replayed, wanted, options)).value;
}

/** Where the groups lie that a step has replayed, in the order in which it learned from them: after its own. */
export async function replayedRollouts(
  store: ObjectStore,
  { run, stage, step }: RolloutPlace,
  options: CallOptions = {},
): Promise<string[]> {
  const found = await store.find(replayedKey(run, stage, step), replayed, options);
  return found === null ? [] : found.groups.map(({ ref }) => ref.key);
}
