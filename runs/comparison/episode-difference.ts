import { canonicalJson } from '../../core/json/canonical-json.ts';
import type { Episode, Observation, RolloutGroup } from '../../core/episode/episode.ts';
import { isRewarded } from '../../core/episode/outcome.ts';

/** Where two things of one kind differ first; null where neither does. */
export interface FirstOther {
  /** Index into the completion: everything after the prompt. */
  at: number;
  /** What each has there; null where it has ended. */
  values: [number | null, number | null];
}

/** How two samples of one task differ. */
export interface EpisodeDifference {
  token: FirstOther | null;
  /** Of sampled tokens, nats; to the bit, so that it may differ where all tokens are the same. */
  logprob: FirstOther | null;
  /** Whether anything else that the policy did or read differs, but for how long it took. */
  conduct: boolean;
  /** Whether it was judged otherwise. */
  verdict: boolean;
  rewards: [number | null, number | null];
}

/** What two groups of one place have in common, or do not. */
export interface GroupDifference {
  /** The policies that sampled, where they are two. */
  weights: boolean;
  /** The first task that is another one, or only in one of them. */
  task: number | null;
  /** By index; those that do not differ are left out. */
  episodes: { episode: number; difference: EpisodeDifference }[];
  /** Only how long something took. */
  clocksOnly: boolean;
}

/** Where and when it was sampled is not of what. */
export function groupDifference(one: RolloutGroup, other: RolloutGroup): GroupDifference {
  const tasks = Array.from({ length: Math.max(one.tasks.length, other.tasks.length) }, (_, i) => i);
  const taskOf = ({ tasks: all }: RolloutGroup, i: number): string =>
    canonicalJson((all[i] ? { ref: all[i].ref, promptTokens: all[i].promptTokens } : null) as never);
  const task = tasks.find((i) => taskOf(one, i) !== taskOf(other, i)) ?? null;
  const count = Math.max(one.episodes.length, other.episodes.length);
  const episodes = Array.from({ length: count }, (_, episode) => ({
    episode,
    difference: episodeDifference(one.episodes[episode], other.episodes[episode]),
  })).filter(
    ({ difference: { token, logprob, conduct: howSolved, verdict } }) =>
      token || logprob || howSolved || verdict,
  );
  const weights = one.weights !== other.weights;
  return { weights, task, episodes, clocksOnly: !weights && task === null && episodes.length === 0 };
}

export function episodeDifference(one: Episode | undefined, other: Episode | undefined): EpisodeDifference {
  const [a, b] = [one ?? NONE, other ?? NONE];
  return {
    token: firstOther(a.tokens, b.tokens),
    logprob: firstOther(a.samplerLogprobs, b.samplerLogprobs),
    conduct: howSolvedOf(one) !== howSolvedOf(other),
    verdict: canonicalJson((a.outcome ?? null) as never) !== canonicalJson((b.outcome ?? null) as never),
    rewards: [rewardOf(one), rewardOf(other)],
  };
}

const NONE: Pick<Episode, 'tokens' | 'samplerLogprobs' | 'outcome'> = { tokens: [], samplerLogprobs: [] };

function firstOther(one: readonly number[], other: readonly number[]): FirstOther | null {
  const length = Math.max(one.length, other.length);
  for (let at = 0; at < length; at++)
    if (!Object.is(one[at], other[at])) return { at, values: [one[at] ?? null, other[at] ?? null] };
  return null;
}

function howSolvedOf(episode: Episode | undefined): string | null {
  if (!episode) return null;
  const { sample, task, mask, kept, turns, inherited, status } = episode;
  const timeless = turns.map(({ observation, results, ...turn }) => ({
    ...turn,
    ...(observation && { observation: withoutTime(observation) }),
    ...(results && { results: results.map(withoutTime) }),
  }));
  const howSolved = { sample, task, mask, kept, turns: timeless, inherited, status };
  return canonicalJson(JSON.parse(JSON.stringify(howSolved)) as never);
}

function withoutTime(observation: Observation): Observation {
  const { seconds: _, ...read } = observation;
  return read;
}

const rewardOf = (episode: Episode | undefined): number | null =>
  episode?.outcome && isRewarded(episode.outcome) ? episode.outcome.reward : null;
