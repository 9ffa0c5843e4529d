import { canonicalAnswer } from '../reward/rule.ts';
import { countVotes, LEAST_VOTERS } from '../reward/votes.ts';
import { isRewarded, isToolFailure } from '../episode/outcome.ts';
import type { Outcome } from '../episode/outcome.ts';
import type { Episode, RolloutGroup } from '../episode/episode.ts';
import { succeeded, withVerdict } from '../episode/reward.ts';
import type { RewardSpec } from '../schema/reward.ts';
import type { SelfPlaySpec } from '../schema/stages/self-play.ts';
import type { Solved } from './proposals.ts';
import type { LabelFacts } from './step-facts.ts';

// Labels that a solver gives its own tasks (R-Zero, Huang et al. 2025, arXiv 2508.05004, section 3.3): the answer that most of
// its samples give stands in for the environment's, which is only measured.

/** Part of a task's samples that must vote, or there is no label: else those few who find an answer at all would decide. */
const QUORUM = 1 / 2;

/** What the samples of a task say of it. */
export type TaskLabel = {
  /** Samples that could have voted: all that infrastructure did not end. */
  samples: number;
  /** Those of them with an answer, and those for the answer that most give. */
  cast: number;
  most: number;
} & (
  | { kind: 'labelled'; label: string }
  /** With a label that is not learnt from: its share of the votes is outside of the filter. */
  | { kind: 'too-hard' | 'too-easy'; label: string }
  /** Without one: several answers lead, or none comes twice; too few samples have voted. */
  | { kind: 'undecided' | 'too-few' }
);

/** The vote of a sample, as what its answer comes down to; null: it has none, or an empty one. */
export function voteOf(episode: Episode): string | null {
  const { outcome } = episode;
  const verdicts = outcome && isRewarded(outcome) ? outcome.components : [];
  return canonicalAnswer({ episode, verdicts });
}

/** What the samples of one task come to; `filter` bounds the share of the majority, ends included. */
export function labelOf(
  votes: readonly (string | null)[],
  filter: SelfPlaySpec['filter'] | undefined,
): TaskLabel {
  const { cast, most, label } = countVotes(votes);
  const counts = { samples: votes.length, cast, most };
  if (cast < QUORUM * votes.length || cast < LEAST_VOTERS) return { ...counts, kind: 'too-few' };
  if (label === null) return { ...counts, kind: 'undecided' };
  const share = most / cast;
  if (filter && share < filter.min) return { ...counts, kind: 'too-hard', label };
  if (filter && share > filter.max) return { ...counts, kind: 'too-easy', label };
  return { ...counts, kind: 'labelled', label };
}

/**
 * By what a proposal is rewarded where labels are the majority's: p is its share of the votes. Nothing can be learnt of a task
 * that too few samples answer, so p is 0 there; where infrastructure has left too few that could, nothing can be said.
 */
export function agreedOn({ kind, samples, cast, most }: TaskLabel): Solved {
  if (kind !== 'too-few') return { successes: most, trials: cast };
  return { successes: 0, trials: samples < LEAST_VOTERS ? 0 : samples };
}

/** Of each task of a group, in their order. */
export function labelsOf(group: RolloutGroup, filter: SelfPlaySpec['filter'] | undefined): TaskLabel[] {
  const votes = group.tasks.map((): (string | null)[] => []);
  for (const episode of group.episodes) {
    const { outcome } = episode;
    if (outcome?.kind === 'failed' && !isToolFailure(outcome)) continue;
    votes[episode.task]!.push(voteOf(episode));
  }
  return votes.map((some) => labelOf(some, filter));
}

/** The group as the solver learns from it. What has no label, or is filtered, is abstained from: nothing is learnt of it. */
export const labelled = (
  reward: RewardSpec,
  group: RolloutGroup,
  labels: readonly TaskLabel[],
): RolloutGroup => ({
  ...group,
  id: `${group.id}.judged`,
  episodes: group.episodes.map((episode) => ({
    ...episode,
    outcome: labelledOutcome(reward, episode, labels[episode.task]!),
  })),
});

function labelledOutcome(reward: RewardSpec, episode: Episode, label: TaskLabel): Outcome {
  const outcome = episode.outcome!;
  if (!isRewarded(outcome)) return outcome;
  if (label.kind !== 'labelled') return { kind: 'abstained', reason: whyUnlabelled(label) };
  const { verifier } = reward.components.find(({ role }) => role === 'outcome')!;
  const { contribution: _, ...said } = outcome.components.find((one) => one.verifier === verifier)!;
  const agreed = voteOf(episode) === label.label;
  const votes = `${label.most} of ${label.cast} votes are for ${agreed ? 'this answer' : 'another answer'}`;
  const evidence = said.evidence === undefined ? votes : `${said.evidence}; ${votes}`;
  return withVerdict(reward, outcome, { ...said, agreed, evidence });
}

function whyUnlabelled({ kind, samples, cast, most }: TaskLabel): string {
  switch (kind) {
    case 'too-few':
      return `no label: ${cast} of ${samples} samples have an answer, and half of them must, and ${LEAST_VOTERS}`;
    case 'undecided':
      return `no label: no answer leads, the most frequent ones have ${most} of ${cast} votes each`;
    default:
      return `filtered as ${kind === 'too-hard' ? 'too hard' : 'too easy'}: the label has ${most} of ${cast} votes`;
  }
}

/** What the labels of a step come to, and how many of them the environment's verifier passes. */
export function labelFacts(
  reward: RewardSpec,
  groups: readonly { group: RolloutGroup; labels: readonly TaskLabel[] }[],
): LabelFacts {
  const all = groups.flatMap(({ labels }) => labels);
  const count = (kind: TaskLabel['kind']): number => all.filter((one) => one.kind === kind).length;
  const verdicts = groups.flatMap(({ group, labels }) =>
    labels.flatMap((label, task) => {
      const right = isRight(reward, group, task, label);
      return right === null ? [] : [{ right, learnt: label.kind === 'labelled' }];
    }),
  );
  const learnt = verdicts.filter((one) => one.learnt);
  const voted = all.filter(({ kind }) => kind !== 'too-few');
  return {
    tasks: all.length,
    tooFew: count('too-few'),
    undecided: count('undecided'),
    tooHard: count('too-hard'),
    tooEasy: count('too-easy'),
    learnt: count('labelled'),
    shareSum: voted.reduce((sum, { most, cast }) => sum + most / cast, 0),
    right: verdicts.filter(({ right }) => right).length,
    checked: verdicts.length,
    rightLearnt: learnt.filter(({ right }) => right).length,
    checkedLearnt: learnt.length,
  };
}

/**
 * Whether the verifier passes the label; null where there is none, or nothing can be said. It may want one of the forms that
 * come down to the same, such as lowest terms: then one sample that has it is enough.
 */
function isRight(reward: RewardSpec, group: RolloutGroup, task: number, label: TaskLabel): boolean | null {
  if (!('label' in label)) return null;
  const said = group.episodes
    .filter((episode) => episode.task === task && voteOf(episode) === label.label)
    .map(({ outcome }) => succeeded(reward.components, outcome!));
  return said.includes(true) || (said.includes(false) ? false : null);
}

/** In words, why a step has given its solver nothing to learn from; null where it has, or where no task was there. */
export function whyNothingLearnt({
  tasks,
  tooFew,
  undecided,
  tooHard,
  tooEasy,
  learnt,
}: LabelFacts): string | null {
  if (tasks === 0 || learnt > 0) return null;
  const parts: [number, string][] = [
    [tooFew, 'with too few answers'],
    [undecided, 'where no answer leads'],
    [tooHard, 'whose majority is below the filter'],
    [tooEasy, 'whose majority is above it'],
  ];
  const some = parts.filter(([count]) => count > 0).map(([count, what]) => `${count} ${what}`);
  return `no task was given to the solver's training: of ${tasks} there were ${some.join(', ')}`;
}
