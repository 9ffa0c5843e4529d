import { succeeded } from '../../core/episode/reward.ts';
import type { RewardSpec } from '../../core/schema/reward.ts';
import type { CallOptions, ObjectStore } from '../../store/objects/object-store.ts';
import type { EpisodeIndex } from './episode-index.ts';
import { foundIn, trajectoriesOf } from './found-episodes.ts';
import type { FoundEpisode, FoundInStep } from './found-episodes.ts';
import type { Query } from './find-query.ts';
import { placeOf } from '../episodes/place.ts';
import type { Place } from '../episodes/place.ts';

/** Where in an episode a text stands, the first time. */
export interface TextHit {
  place: Place;
  where: 'prompt' | 'turn' | 'observation' | 'answer';
  /** From 1; null of a prompt. */
  turn: number | null;
  before: string;
  /** As it is written there. */
  text: string;
  after: string;
  /** Whether the episode succeeded; null where nobody knows. */
  success: boolean | null;
}

export interface SearchProgress {
  /** Groups that were read, of how many. */
  done: number;
  total: number;
}

export type SearchOptions = CallOptions & {
  progress?: (at: SearchProgress) => void;
  damaged?: string[];
};

/** Characters of what stands around a text. */
const AROUND = 60;

/**
 * Episodes among those that match in which a text stands, upper and lower case alike: as they are found. It is plain
 * text, because a pattern that somebody writes can keep the process for ever. Groups that cannot be read are added to
 * `damaged`, with why.
 */
export async function* searchText(
  store: ObjectStore,
  index: EpisodeIndex,
  query: Query & { text: string },
  {
    progress = () => {},
    damaged = [],
    found,
    ...options
  }: SearchOptions & { found?: readonly FoundInStep[] } = {},
): AsyncGenerator<TextHit> {
  found ??= await foundIn(index, query, { ...options, damaged });
  const at = { done: 0, total: found.reduce((sum, { groups }) => sum + groups.length, 0) };
  progress({ ...at });
  const readGroup = (): void => {
    at.done++;
    progress({ ...at });
  };
  const look = finder(query.text);
  for await (const episodes of trajectoriesOf(store, index.run, found, {
    ...options,
    damaged,
    readGroup,
  })) {
    for (const episode of episodes) {
      const hit = hitIn(episode, look);
      if (hit) yield { ...hit, success: successOf(episode, index.reward) };
    }
  }
}

/** Of what matches, the episodes in which its text stands. */
export async function foundWithText(
  store: ObjectStore,
  index: EpisodeIndex,
  query: Query & { text: string },
  { progress, damaged = [], ...options }: SearchOptions = {},
): Promise<FoundInStep[]> {
  const found = await foundIn(index, query, { ...options, damaged });
  const hits = new Set<string>();
  const search = { ...options, ...(progress && { progress }), damaged, found };
  for await (const { place } of searchText(store, index, query, search)) hits.add(placeOf(place));
  const isHit = (place: Omit<Place, 'run'>): boolean => hits.has(placeOf({ run: index.run, ...place }));
  return found.flatMap(({ stage, step, groups }) => {
    const some = groups.flatMap((one) => {
      const episodes = one.episodes.filter((episode) => isHit({ stage, step, group: one.group, episode }));
      return episodes.length === 0 ? [] : [{ ...one, episodes }];
    });
    return some.length === 0 ? [] : [{ stage, step, groups: some }];
  });
}

const successOf = ({ episode }: FoundEpisode, { components }: RewardSpec): boolean | null =>
  episode.outcome ? succeeded(components, episode.outcome) : null;

type TextPlace = Omit<TextHit, 'success'>;

function hitIn({ place, task, episode }: FoundEpisode, look: Finder): TextPlace | null {
  const hit = (where: TextHit['where'], turn: number | null, text: string): TextPlace | null => {
    const found = look(text);
    return found && { place, where, turn, ...found };
  };
  const inPrompt = hit('prompt', null, task.prompt);
  if (inPrompt) return inPrompt;
  for (const [i, { text, observation }] of episode.turns.entries()) {
    const inTurn =
      hit('turn', i + 1, text) ?? (observation ? hit('observation', i + 1, observation.text) : null);
    if (inTurn) return inTurn;
  }
  const { status, turns } = episode;
  return status.kind === 'answered' ? hit('answer', turns.length, status.answer) : null;
}

type Finder = (text: string) => Pick<TextHit, 'before' | 'text' | 'after'> | null;

/** Some letters change their number when their case is folded: where it stands is then told by the folded text. */
function finder(wanted: string): Finder {
  const folded = wanted.toLowerCase();
  return (text) => {
    const lower = text.toLowerCase();
    const at = lower.indexOf(folded);
    if (at < 0) return null;
    const from = lower.length === text.length ? text : lower;
    const end = at + folded.length;
    return {
      before: from.slice(Math.max(0, at - AROUND), at),
      text: from.slice(at, end),
      after: from.slice(end, end + AROUND),
    };
  };
}
