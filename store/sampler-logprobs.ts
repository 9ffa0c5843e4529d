import type { Episode, RolloutGroup } from '../core/episode/episode.ts';
import type { TokenStream } from '../engine/learner/contract.ts';

// The log-probs of the sampler are `samplerLogprobs` wherever Gradus computes. Stored objects have older names for them, and
// keep these: `logprobs` in an episode (`gradus.rollout/1`), `token.rollout` in a batch (`gradus.batch/2`). Only this file
// knows both.

/** An episode as it is stored. */
export type StoredEpisode = Omit<Episode, 'samplerLogprobs'> & { logprobs: number[] };

/** With its fields in the same order, so that an episode has the same bytes as ever. No array is copied. */
export const toStored = (episode: Episode): StoredEpisode =>
  renamed(episode, 'samplerLogprobs', 'logprobs') as StoredEpisode;

export const fromStored = (episode: StoredEpisode): Episode =>
  renamed(episode, 'logprobs', 'samplerLogprobs') as Episode;

/** A group as it is stored. */
export type StoredGroup<Group extends RolloutGroup = RolloutGroup> = Omit<Group, 'episodes'> & {
  episodes: StoredEpisode[];
};

export const toStoredGroup = <Group extends RolloutGroup>(group: Group): StoredGroup<Group> => ({
  ...group,
  episodes: group.episodes.map(toStored),
});

export const fromStoredGroup = <Group extends RolloutGroup>(group: StoredGroup<Group>): Group =>
  ({ ...group, episodes: group.episodes.map(fromStored) }) as unknown as Group;

/** What a batch calls a stream. */
export const tensorOf = (stream: TokenStream): string =>
  `token.${stream === 'samplerLogprobs' ? 'rollout' : stream}`;

const renamed = (object: object, from: string, to: string): object =>
  Object.fromEntries(Object.entries(object).map(([name, value]) => [name === from ? to : name, value]));
