import { z } from 'zod';
import { GradusError } from '../../core/errors.ts';
import type { Json } from '../../core/json/json.ts';
import type {
  Episode,
  EpisodeSession,
  GroupTask,
  Observation,
  RolloutGroup,
} from '../../core/episode/episode.ts';
import type { BlobRef } from '../../core/refs.ts';
import { checkedJson, jsonCodec } from '../../store/codec.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';
import { fromStored, fromStoredGroup, toStored, toStoredGroup } from '../../store/sampler-logprobs.ts';
import type { StoredEpisode, StoredGroup } from '../../store/sampler-logprobs.ts';
import { isWhole } from '../../store/rollout/trajectories.ts';

/** All episodes of a group, as their first advance left them. */
export const parts = checkedJson<RolloutGroup>((json, key) => {
  const { tasks, episodes } = json as { tasks?: Json; episodes?: Json };
  if (Array.isArray(tasks) && Array.isArray(episodes) && episodes.every(isWhole))
    return fromStoredGroup(json as unknown as StoredGroup);
  throw new GradusError('store', 'invalid-object', `${key} is no part of a group: use another object`);
}, toStoredGroup);

/** An episode on its way with all that it takes to go on: whoever follows it reads nothing of the other ones. */
export interface FollowedEpisode {
  task: GroupTask;
  /** Its `task` counts among all tasks of the group. */
  episode: Episode;
}

/** A few episodes that have waited for long calls. */
export const pages = checkedJson<FollowedEpisode[]>(
  (json, key) => {
    const isFollowed = (one: Json): boolean => {
      const { task, episode } = one as { task?: Json; episode?: Json };
      return typeof task === 'object' && task !== null && isWhole(episode ?? null);
    };
    if (Array.isArray(json) && json.every(isFollowed)) {
      const stored = json as unknown as (Omit<FollowedEpisode, 'episode'> & { episode: StoredEpisode })[];
      return stored.map((one) => ({ ...one, episode: fromStored(one.episode) }));
    }
    throw new GradusError('store', 'invalid-object', `${key} is no page of episodes: use another object`);
  },
  (page) => page.map((one) => ({ ...one, episode: toStored(one.episode) })),
);

/** A page of a group holds so many episodes, or more where it would have more pages than a history should name. */
const PAGE = 16;
const MOST_PAGES = 256;

/** The episodes of a group that wait, shared out: what one call reads does not grow with the group. */
export function waitingPages({ tasks, episodes }: RolloutGroup): FollowedEpisode[][] {
  const waiting = episodes
    .filter(({ status }) => status.kind === 'calling')
    .map((episode) => ({ task: tasks[episode.task]!, episode }));
  const size = Math.max(PAGE, Math.ceil(waiting.length / MOST_PAGES));
  return Array.from({ length: Math.ceil(waiting.length / size) }, (_, page) =>
    waiting.slice(page * size, (page + 1) * size),
  );
}

/** What a long call brought, with what is now to be kept of the session that had it. */
export const observations = jsonCodec<Observation & { session?: EpisodeSession }>(
  'an observation',
  z.looseObject({ text: z.string(), seconds: z.number().optional(), session: z.looseObject({}).optional() }),
);

/** Throws RangeError when the page has no such episode. */
export function episodeOf(
  page: readonly FollowedEpisode[],
  { task, sample, id }: { task: number; sample: number; id: string },
): FollowedEpisode {
  const found = page.find(({ episode }) => episode.task === task && episode.sample === sample);
  if (!found) throw new RangeError(`no episode of the page waits for ${id}`);
  return found;
}

/** The group's episodes as they ended. */
export async function mergeParts(
  store: ObjectStore,
  first: BlobRef,
  followed: readonly BlobRef[],
): Promise<RolloutGroup> {
  const [group, ended] = await Promise.all([
    store.read(first, parts),
    Promise.all(followed.map((ref) => store.read(ref, pages))),
  ]);
  const nameOf = ({ task, sample }: Episode): string => `${task}/${sample}`;
  const last = new Map(ended.flat().map(({ episode }) => [nameOf(episode), episode]));
  return { ...group, episodes: group.episodes.map((episode) => last.get(nameOf(episode)) ?? episode) };
}
