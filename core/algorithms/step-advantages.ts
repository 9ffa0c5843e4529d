import { GradusError } from '../errors.ts';
import type { Episode, RolloutGroup } from '../episode/episode.ts';
import type { Outcome } from '../episode/outcome.ts';
import type { TaskRef } from '../refs.ts';
import type { BatchRequest } from '../requests/batch.ts';
import { NO_SCALE, rewardScales, scaledOutcome } from '../reward/normalization.ts';
import type { EnvironmentScale, RewardScale } from '../reward/normalization.ts';
import type { RewardSpec } from '../schema/reward.ts';
import type { SampleAdvantages } from './advantage.ts';
import { mostDeviating } from './group-baseline.ts';
import { computeAdvantages, learnsWhole, movingMeans, takesBranches } from './index.ts';
import type { MovingMeans } from './moving-means.ts';
import { sampleOf } from './sample.ts';
import { scoresByEpisode } from './scores.ts';
import type { TokenScores } from './scores.ts';
import { fromTheirBeginning, taskGroups } from './task-group.ts';
import type { TaskGroup } from './task-group.ts';

/** A difference of advantages that is smaller is one of rounding. */
const SMALLEST_DIFFERENCE = 1e-6;

/** What advantages may depend on besides the groups. */
export interface Beside {
  scores?: TokenScores;
  /** One greedy sample of each task. */
  greedy?: readonly RolloutGroup[];
  /** What the steps before have left, where the method leaves something. */
  movingMeans?: MovingMeans | undefined;
}

/** What a step's batch is made by, of all that is said of it. */
export type AdvantageRequest = Pick<BatchRequest, 'algorithm' | 'reward' | 'keepGroups'>;

export interface GroupAdvantages {
  /** By its newest verdicts; an episode that branched off is one from its beginning on where the method learns whole ones. */
  group: TaskGroup;
  /** Learnt from before, with other verdicts. */
  late: boolean;
  advantages: SampleAdvantages[];
}

export interface StepAdvantages {
  /** As `taskGroups` has them. */
  groups: readonly GroupAdvantages[];
  /** Those that are not late, as the method was given them. */
  fresh: readonly TaskGroup[];
  scales: EnvironmentScale[];
  /** What the step leaves to the next one, where the method leaves something. */
  movingMeans?: MovingMeans;
}

/**
 * Advantages of a step's episodes, as the method computes them. Episodes without a trainable reward are left out. Where only
 * part of the groups is kept, the others have none.
 *
 * Of a group that was learnt from before, with other verdicts, every member whose advantage changed has the difference, also
 * where only the group's mean and deviation did that: what was learnt is taken back, so that all advantages together are
 * those of the last verdicts.
 * Throws GradusError('spec', 'branches') where episodes have branches, and the method does not train them.
 */
export function stepAdvantages(
  groups: readonly RolloutGroup[],
  { algorithm, reward, keepGroups = 1 }: AdvantageRequest,
  beside: Beside = {},
): StepAdvantages {
  if (!takesBranches(algorithm) && groups.some(({ episodes }) => episodes.some(({ branches }) => branches)))
    throw new GradusError(
      'spec',
      'branches',
      `${algorithm.kind} does not train episodes with branches, and an agent has made some: choose another method, or other episodes`,
    );
  const stored = learnsWhole(algorithm) ? taskGroups(groups).map(fromTheirBeginning) : taskGroups(groups);
  const scoresOf = scoresByEpisode(stored, reward, beside.scores ?? {});
  // What is learnt late is on today's scale as it is and as it was, and so is the difference.
  const scales = reward.normalization ? rewardScales(groups, reward.truncated) : [];
  const scaleOf = ({ ref }: Pick<TaskGroup, 'ref'>) =>
    scales.find(({ environment }) => environment === ref.environment) ?? NO_SCALE;
  const greedyOf = greedyRewards(beside.greedy ?? [], reward, scaleOf);
  const judged = (
    group: TaskGroup<Episode>,
    outcomeOf: (episode: Episode) => Outcome | undefined,
  ): TaskGroup => {
    const greedy = greedyOf.get(nameOf(group.ref));
    return {
      ...group,
      samples: group.samples.map((episode) =>
        sampleOf(episode, outcomeOf(episode), reward, scaleOf(group), scoresOf.get(episode) ?? {}),
      ),
      ...(greedy !== undefined && { greedy }),
    };
  };
  const all = stored.map((group): GroupAdvantages => {
    const now = judged(group, ({ outcome }) => outcome);
    if (!group.samples.some(({ learntAs }) => learntAs)) return { group: now, late: false, advantages: [] };
    const before = judged(group, ({ learntAs }) => learntAs);
    const advantages = difference(
      computeAdvantages(algorithm, [now]),
      computeAdvantages(algorithm, [before]),
    );
    return { group: now, late: true, advantages };
  });
  const notLate = all.filter(({ late }) => !late);
  const fresh = notLate.map(({ group }) => group);
  const kept = mostDeviating(fresh, keepGroups);
  for (const one of computeAdvantages(algorithm, fresh, beside.movingMeans)) {
    if (kept.has(one.group)) notLate[one.group]!.advantages.push(one);
  }
  const left = movingMeans(algorithm, fresh, beside.movingMeans);
  return { groups: all, fresh, scales, ...(left && { movingMeans: left }) };
}

/** Advantages now less those of before, where that is more than rounding. */
function difference(
  now: readonly SampleAdvantages[],
  before: readonly SampleAdvantages[],
): SampleAdvantages[] {
  const of = (all: readonly SampleAdvantages[], sample: number): number[] | undefined =>
    all.find((one) => one.sample === sample)?.advantages;
  const samples = [...new Set([...now, ...before].map(({ sample }) => sample))].toSorted((a, b) => a - b);
  return samples
    .map((sample): SampleAdvantages => {
      const [is, was] = [of(now, sample), of(before, sample)];
      const advantages = (is ?? was)!.map((_, i) => (is?.[i] ?? 0) - (was?.[i] ?? 0));
      return { group: 0, sample, advantages };
    })
    .filter(({ advantages }) => advantages.some((difference) => Math.abs(difference) > SMALLEST_DIFFERENCE));
}

const nameOf = ({ environment, split, level, index }: TaskRef): string =>
  JSON.stringify([environment, split, level, index]);

function greedyRewards(
  groups: readonly RolloutGroup[],
  { truncated }: RewardSpec,
  scaleOf: (group: Pick<TaskGroup, 'ref'>) => RewardScale,
): Map<string, number> {
  const rewards = new Map<string, number>();
  for (const group of taskGroups(groups)) {
    const outcome = group.samples[0]?.outcome;
    const earned = outcome ? scaledOutcome(outcome, truncated, scaleOf(group)) : null;
    if (earned !== null) rewards.set(nameOf(group.ref), earned);
  }
  return rewards;
}
