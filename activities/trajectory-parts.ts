import type { Episode, Observation, RolloutGroup } from '../core/episode.ts';
import type { BlobRef } from '../core/refs.ts';
import type { ObjectStore } from './store/object-store.ts';

/** Episodes on their way, as an advance left them. */
export async function readPart(store: ObjectStore, ref: BlobRef): Promise<RolloutGroup> {
  return (await store.getJson(ref)) as unknown as RolloutGroup;
}

export async function readObservation(store: ObjectStore, ref: BlobRef): Promise<Observation> {
  return (await store.getJson(ref)) as unknown as Observation;
}

/** Throws RangeError when the group has no such episode. */
export function episodeOf(group: RolloutGroup, { task, sample }: { task: number; sample: number }): Episode {
  const found = group.episodes.find((episode) => episode.task === task && episode.sample === sample);
  if (!found) throw new RangeError(`${group.id} has no sample ${sample} of task ${task}`);
  return found;
}

/** The group's episodes as they stand last: a later part supersedes an earlier one's. */
export async function mergeParts(store: ObjectStore, refs: readonly BlobRef[]): Promise<RolloutGroup> {
  const parts = await Promise.all(refs.map((ref) => readPart(store, ref)));
  const [first, ...later] = parts;
  if (!first) throw new RangeError('a group has at least one part');
  const episodes = [...first.episodes];
  for (const part of later) {
    for (const episode of part.episodes) {
      const at = episodes.findIndex(({ task, sample }) => task === episode.task && sample === episode.sample);
      episodes[at] = episode;
    }
  }
  return { ...first, episodes };
}
