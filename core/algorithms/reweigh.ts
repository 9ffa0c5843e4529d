import type { Episode, RolloutGroup } from '../episode/episode.ts';
import { isRewarded, trainableReward } from '../episode/outcome.ts';
import type { Outcome, OutcomeKind } from '../episode/outcome.ts';
import type { TaskRef } from '../refs.ts';
import { taskRefOf } from '../training/tasks-again.ts';
import { recomposed } from '../reward/recompose.ts';
import type { RewardSpec } from '../schema/reward.ts';
import { deviationOf, isRounding } from '../statistics/standardized.ts';
import { isTrainable } from './sample.ts';
import { isMoving, ROUNDING } from './advantage.ts';
import type { MovingMeans } from './moving-means.ts';
import { stepAdvantages } from './step-advantages.ts';
import { taskGroups } from './task-group.ts';
import type { AdvantageRequest, GroupAdvantages } from './step-advantages.ts';
import type { TokenScores } from './scores.ts';
import type { SampleAdvantages } from './advantage.ts';

// What the advantages of a step would have been, had its reward been another one, by the functions that a step uses. Nothing
// is sampled, verified or scored for it.

/** Of the same episode: by the reward as it was, and by the changed one. */
export interface BeforeAfter<T> {
  before: T;
  after: T;
}

/** All that the advantages of a step depend on. */
export interface ReweighableStep extends Omit<AdvantageRequest, 'reward'> {
  groups: readonly RolloutGroup[];
  greedy: readonly RolloutGroup[];
  scores: TokenScores;
  movingMeans?: MovingMeans | undefined;
}

export interface ReweighedEpisode {
  /** Id of the group that it is stored in, and its place there. */
  group: string;
  episode: number;
  sample: number;
  outcome: BeforeAfter<OutcomeKind>;
  /** null: it stays out of statistics and loss. */
  reward: BeforeAfter<number | null>;
  /** By verifier or rule, what it adds to the reward. */
  contributions: { name: string; before: number | null; after: number | null }[];
  /** Mean over the tokens that it is about; null where it is about none. */
  advantage: BeforeAfter<number | null>;
  /** Tokens that have an advantage either way. */
  tokens: number;
  /** Those of them whose advantage has the other sign, so that what was made likelier is made less likely. */
  flipped: number;
}

export interface ReweighedTask {
  ref: TaskRef;
  /** Sampled with a hint, or for another task. */
  hindsight: boolean;
  /** Of its trainable rewards, of the sample (n − 1); 0 for fewer than two. */
  deviation: BeforeAfter<number>;
  /** Whether some of its advantages move the policy. */
  teaches: BeforeAfter<boolean>;
  episodes: ReweighedEpisode[];
}

export interface Reweighed {
  tasks: ReweighedTask[];
  /** Episodes that would be learnt from, and that nobody has scored when they were not. They are left out. */
  unscored: number;
  /** Episodes whose reward is another one when it is composed anew by the reward that they were judged by: none. */
  otherwiseComposed: number;
}

export function reweigh(
  { groups, greedy, scores, movingMeans, ...settings }: ReweighableStep,
  { from, to }: { from: RewardSpec; to: RewardSpec },
): Reweighed {
  const sliceOf = slices(groups, from);
  const isScored = Object.keys(scores).length > 0;
  let unscored = 0;
  const under = (reward: RewardSpec, some: readonly RolloutGroup[], all: boolean): RolloutGroup[] =>
    some.map((group) => ({
      ...group,
      episodes: group.episodes.map((episode): Episode => {
        const anew = judgedBy(episode, { from, to: reward });
        if (!all || !isScored || sliceOf.has(episode) || !isTrainable(anew, reward)) return anew;
        unscored++;
        return { ...anew, outcome: UNSCORED };
      }),
    }));
  const changed = under(to, groups, true);
  const advantages = {
    before: stepAdvantages(groups, { ...settings, reward: from }, { scores, greedy, movingMeans }),
    after: stepAdvantages(
      changed,
      { ...settings, reward: to },
      {
        scores: realigned(scores, sliceOf, [groups, changed], to),
        greedy: under(to, greedy, false),
        movingMeans,
      },
    ),
  };
  const placeOf = new Map(
    groups.flatMap(({ id, episodes }) => episodes.map((one, episode) => [one, { group: id, episode }])),
  );
  const [stored, rejudged] = [taskGroups(groups), taskGroups(changed)];
  const tasks = stored.map((task, t): ReweighedTask => {
    const [was, is] = [advantages.before.groups[t]!, advantages.after.groups[t]!];
    const episodes = task.samples.map((episode, e): ReweighedEpisode => {
      const other = rejudged[t]!.samples[e]!;
      const said = [advantagesOf(was, e), advantagesOf(is, e)] as const;
      return {
        ...placeOf.get(episode)!,
        sample: episode.sample,
        outcome: { before: kindOf(episode.outcome), after: kindOf(other.outcome) },
        reward: { before: rewardOf(episode, from), after: rewardOf(other, to) },
        contributions: contributions(episode.outcome, other.outcome),
        advantage: { before: meanOver(said[0]), after: meanOver(said[1]) },
        ...compared(said[0], said[1]),
      };
    });
    const rewards = (of: 'before' | 'after'): number[] =>
      episodes.flatMap(({ reward }) => (reward[of] === null ? [] : [reward[of]]));
    return {
      ref: taskRefOf(task.ref),
      hindsight: task.hindsight,
      deviation: { before: spreadOf(rewards('before')), after: spreadOf(rewards('after')) },
      teaches: { before: was.advantages.some(teaches), after: is.advantages.some(teaches) },
      episodes,
    };
  });
  const otherwiseComposed = groups
    .flatMap(({ episodes }) => episodes)
    .filter(
      (episode) => rewardOf(judgedBy(episode, { from, to: from }), from) !== rewardOf(episode, from),
    ).length;
  return { tasks, unscored, otherwiseComposed };
}

const UNSCORED: Outcome = { kind: 'abstained', reason: 'its tokens were not scored' };

/** Judged by another reward, and likewise what it was judged to be when it was last learnt from. */
function judgedBy(episode: Episode, rewards: { from: RewardSpec; to: RewardSpec }): Episode {
  const { outcome, learntAs } = episode;
  return {
    ...episode,
    ...(outcome && { outcome: recomposed(outcome, episode, rewards) }),
    ...(learntAs && { learntAs: recomposed(learntAs, episode, rewards) }),
  };
}

const episodesIn = (groups: readonly RolloutGroup[]): Episode[] =>
  taskGroups(groups).flatMap(({ samples }) => samples);

/** Where scores have an episode's tokens: of those that have a trainable reward, end to end. */
function slices(groups: readonly RolloutGroup[], reward: RewardSpec): Map<Episode, [number, number]> {
  const of = new Map<Episode, [number, number]>();
  let at = 0;
  for (const episode of episodesIn(groups)) {
    if (!isTrainable(episode, reward)) continue;
    of.set(episode, [at, at + episode.tokens.length]);
    at += episode.tokens.length;
  }
  return of;
}

/** The scores of those episodes that can be trained on under the changed reward. */
function realigned(
  scores: TokenScores,
  sliceOf: ReadonlyMap<Episode, [number, number]>,
  [groups, changed]: [readonly RolloutGroup[], readonly RolloutGroup[]],
  to: RewardSpec,
): TokenScores {
  const anew = episodesIn(changed);
  const kept = episodesIn(groups).flatMap((episode, i) =>
    isTrainable(anew[i]!, to) && sliceOf.has(episode) ? [sliceOf.get(episode)!] : [],
  );
  return Object.fromEntries(
    Object.entries(scores).map(([name, values]) => [
      name,
      Float32Array.from(kept.flatMap(([start, end]) => Array.from(values.subarray(start, end)))),
    ]),
  );
}

const kindOf = (outcome: Outcome | undefined): OutcomeKind => outcome?.kind ?? 'pending';

const rewardOf = ({ outcome }: Episode, { truncated }: RewardSpec): number | null =>
  outcome ? trainableReward(outcome, truncated) : null;

function contributions(
  before: Outcome | undefined,
  after: Outcome | undefined,
): ReweighedEpisode['contributions'] {
  const by = (outcome: Outcome | undefined): Map<string, number> =>
    new Map(
      outcome && isRewarded(outcome)
        ? outcome.components.map(({ verifier, contribution }) => [verifier, contribution])
        : [],
    );
  const [was, is] = [by(before), by(after)];
  return [...new Set([...was.keys(), ...is.keys()])].map((name) => ({
    name,
    before: was.get(name) ?? null,
    after: is.get(name) ?? null,
  }));
}

/** Rounding that has no part in how samples compare is no spread. */
function spreadOf(rewards: readonly number[]): number {
  const deviation = deviationOf(rewards);
  return isRounding(deviation) ? 0 : deviation;
}

/** What others are only compared with teaches nothing itself. */
const teaches = (one: SampleAdvantages): boolean => one.label !== 0 && isMoving(one);

/** Per token of the completion, over all advantages of the sample; absent where none is about the token. */
function advantagesOf({ group, advantages }: GroupAdvantages, sample: number): Map<number, number> {
  const own = group.samples[sample]!.mask;
  const sums = new Map<number, number>();
  for (const one of advantages) {
    if (one.sample !== sample || one.label === 0) continue;
    (one.mask ?? own).forEach((bit, at) => {
      if (bit === 1) sums.set(at, (sums.get(at) ?? 0) + one.advantages[at]!);
    });
  }
  return sums;
}

const meanOver = (said: ReadonlyMap<number, number>): number | null =>
  said.size === 0 ? null : [...said.values()].reduce((sum, one) => sum + one, 0) / said.size;

function compared(
  before: ReadonlyMap<number, number>,
  after: ReadonlyMap<number, number>,
): Pick<ReweighedEpisode, 'tokens' | 'flipped'> {
  let [tokens, flipped] = [0, 0];
  for (const [at, was] of before) {
    const is = after.get(at);
    if (is === undefined) continue;
    tokens++;
    if (Math.abs(was) > ROUNDING && Math.abs(is) > ROUNDING && was > 0 !== is > 0) flipped++;
  }
  return { tokens, flipped };
}
