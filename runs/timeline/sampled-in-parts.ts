import type { Json } from '../../core/json/json.ts';
import type { BlobRef } from '../../core/refs.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';
import { fieldOf } from '../temporal/temporal-values.ts';

/** An episode of a group: index of its task, and sample. */
export interface EpisodeName {
  task: number;
  sample: number;
}

export const sameEpisode = (a: EpisodeName, b: EpisodeName): boolean =>
  a.task === b.task && a.sample === b.sample;

/** The episode that something speaks of; null where it does not. */
export function episodeIn(value: unknown): EpisodeName | null {
  const [task, sample] = [fieldOf(value, 'task'), fieldOf(value, 'sample')];
  return Number.isSafeInteger(task) && Number.isSafeInteger(sample)
    ? { task: task as number, sample: sample as number }
    : null;
}

/** Larger objects are not read for a number. */
const MOST_BYTES = 64 * 2 ** 20;

/**
 * Tokens that these episodes had sampled in what is kept of them on their way (`parts/`); `wanted` null: all of them.
 * null where that would take too much reading. Throws what the store throws.
 */
export async function sampledIn(
  store: ObjectStore,
  refs: readonly BlobRef[],
  wanted: readonly EpisodeName[] | null,
): Promise<number | null> {
  if (refs.reduce((sum, { bytes }) => sum + bytes, 0) > MOST_BYTES) return null;
  const tokens = new Map<string, number>();
  for (const ref of refs) {
    for (const episode of episodesOf(await store.getJson(ref))) {
      const name = episodeIn(episode);
      if (name === null || !(wanted?.some((one) => sameEpisode(one, name)) ?? true)) continue;
      // An episode only grows.
      const key = `${name.task}/${name.sample}`;
      tokens.set(key, Math.max(tokens.get(key) ?? 0, sampledOf(episode)));
    }
  }
  return [...tokens.values()].reduce((sum, count) => sum + count, 0);
}

/** The number of the first sample in what is kept of a group: those that grow a tree do not begin with 0. */
export async function firstSampleIn(store: ObjectStore, ref: BlobRef): Promise<number> {
  const samples = episodesOf(await store.getJson(ref)).flatMap((one) => episodeIn(one)?.sample ?? []);
  return samples.reduce((least, sample) => Math.min(least, sample), samples[0] ?? 0);
}

/** Of a whole group, or of a page of those that wait. */
function episodesOf(json: Json): unknown[] {
  if (Array.isArray(json)) return json.map((one) => fieldOf(one, 'episode'));
  const episodes = fieldOf(json, 'episodes');
  return Array.isArray(episodes) ? (episodes as unknown[]) : [];
}

/** Sampled tokens are those whose mask is 1, but for those that the episode has of another one. */
function sampledOf(episode: unknown): number {
  const mask = fieldOf(episode, 'mask');
  const inherited = fieldOf(fieldOf(episode, 'inherited'), 'tokens');
  const own = Array.isArray(mask) ? mask.slice(typeof inherited === 'number' ? inherited : 0) : [];
  return own.filter((one) => one === 1).length;
}
