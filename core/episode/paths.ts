import type { Episode } from './episode.ts';

/** One path of an episode from its prompt to its last turn. */
export interface EpisodePath {
  /** Where its tokens stand in the episode's, in order. */
  places: number[];
  /** How many of the first of them an earlier path has, too. */
  shared: number;
}

/** Every path of an episode, the first one first: each token is in one of them that does not share it. */
export function pathsOf({
  tokens,
  branches = [],
}: Pick<Episode, 'branches'> & { tokens: ArrayLike<number> }): EpisodePath[] {
  const paths: EpisodePath[] = [];
  [{ start: 0, from: 0 }, ...branches].forEach(({ start, from }, i) => {
    const end = branches[i]?.start ?? tokens.length;
    const before = paths.find(({ places }) => places.includes(from - 1))?.places ?? [];
    const read = before.slice(0, before.indexOf(from - 1) + 1);
    paths.push({
      places: [...read, ...Array.from({ length: end - start }, (_, at) => start + at)],
      shared: read.length,
    });
  });
  return paths;
}

/** Tokens that came between turns: not the prompt, and not what an agent has of one besides. */
export function observedTokens({
  mask,
  turns,
  branches = [],
}: Pick<Episode, 'mask' | 'turns' | 'branches'>): number {
  const first = turns[0]?.start ?? 0;
  // A branch from before the first turn begins with a prompt of its own.
  const prompts = [{ start: 0, from: 0 }, ...branches].filter(({ from }) => from <= first);
  const read = prompts.reduce((sum, { start }) => {
    const turn = turns.find((one) => one.start >= start);
    return sum + (turn ? turn.start - start : 0);
  }, 0);
  return mask.filter((bit) => bit === 0).length - read;
}
