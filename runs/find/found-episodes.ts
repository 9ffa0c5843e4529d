import type { Episode, GroupTask, RolloutGroup } from '../../core/episode/episode.ts';
import { inParallel } from '../../store/in-parallel.ts';
import type { CallOptions, ObjectStore } from '../../store/objects/object-store.ts';
import { unlessDamaged } from '../../store/objects/unless-damaged.ts';
import { findTrajectories } from '../../store/rollout/trajectories.ts';
import type { EpisodeIndex } from './episode-index.ts';
import { matches } from './find-query.ts';
import type { Query } from './find-query.ts';
import type { Place } from '../episodes/place.ts';
import { inPortions } from '../episodes/stored-groups.ts';
import type { CountedGroup } from '../episodes/stored-groups.ts';

/** The episodes of a step that match. */
export interface FoundInStep {
  stage: string;
  step: number;
  groups: (CountedGroup & { episodes: number[] })[];
}

/**
 * All that match, or the first so many, in the order of the run: small numbers, whose trajectories are read later. Groups
 * that cannot be read are added to `damaged`, with why.
 */
export async function foundIn(
  index: EpisodeIndex,
  query: Query,
  { most = Infinity, damaged = [], ...options }: CallOptions & { most?: number; damaged?: string[] } = {},
): Promise<FoundInStep[]> {
  const found: FoundInStep[] = [];
  let total = 0;
  const { unreadable } = await index.scan((indexed) => {
    const groups = new Map(
      indexed.groups.map((group) => [group.group, { ...group, episodes: [] as number[] }]),
    );
    const { stage, step } = indexed;
    for (const facts of indexed.facts) {
      if (!matches(query, { stage, step, facts })) continue;
      if (total++ >= most) break;
      groups.get(facts.group)?.episodes.push(facts.episode);
    }
    const some = [...groups.values()].filter(({ episodes }) => episodes.length > 0);
    if (some.length > 0) found.push({ stage, step, groups: some });
  }, options);
  damaged.push(...unreadable.map(({ key, message }) => `${key}: ${message}`));
  return found;
}

/** An episode as it is stored, and where. */
export interface FoundEpisode {
  place: Place;
  group: RolloutGroup;
  task: GroupTask;
  episode: Episode;
}

/**
 * Group by group, a few in memory at a time. Those that somebody has deleted meanwhile are not there any more; those that
 * cannot be read any more are added to `damaged`, with why, or throw without it.
 */
export async function* trajectoriesOf(
  store: ObjectStore,
  run: string,
  found: readonly FoundInStep[],
  {
    readGroup = () => {},
    damaged,
    ...options
  }: CallOptions & { readGroup?: () => void; damaged?: string[] } = {},
): AsyncGenerator<FoundEpisode[]> {
  for (const { stage, step, groups } of found) {
    for (const portion of inPortions(groups)) {
      options.signal?.throwIfAborted();
      const read = await inParallel(
        portion,
        ({ key }) => unlessDamaged(damaged, () => findTrajectories(store, key, options)),
        8,
      );
      for (const [i, { group: number, episodes }] of portion.entries()) {
        readGroup();
        const group = read[i];
        if (!group) continue;
        yield episodes.flatMap((at) => {
          const episode = group.episodes[at];
          if (!episode) return [];
          const place = { run, stage, step, group: number, episode: at };
          return [{ place, group, task: group.tasks[episode.task]!, episode }];
        });
      }
    }
  }
}
