import { mixesSuccess, mostDeviating, tellsApart } from './group-baseline.ts';
import { giveCredit, learnsWhole } from './index.ts';
import type { CreditGroup, Lesson, Sample, SampleTurn, Score } from './method.ts';
import type { TrainSequence } from './train-sequence.ts';
import type { Episode, GroupTask, RolloutGroup } from '../episode/episode.ts';
import { trainableReward } from '../episode/outcome.ts';
import type { Outcome } from '../episode/outcome.ts';
import { succeeded, turnRewards } from '../episode/reward.ts';
import type { TaskRef } from '../refs.ts';
import type { BatchRequest } from '../requests.ts';
import { NO_SCALE, rewardScales, scaledOutcome } from '../reward/normalization.ts';
import type { EnvironmentScale, RewardScale } from '../reward/normalization.ts';
import type { RewardSpec } from '../schema/curriculum-spec.ts';

/** A difference of advantages that is smaller is one of rounding. */
const SMALLEST_LESSON = 1e-6;

/** The episodes of one task. */
export interface TaskEpisodes extends Pick<GroupTask, 'ref' | 'promptTokens'> {
  /** Sampled behind another prompt than this one. */
  hindsight: boolean;
  /** SHA-256 of the weights that sampled. */
  weights: string;
  episodes: Episode[];
}

/** In the order in which scores, credit and batches have them: the episodes of a tree are of one task, whenever sampled. */
export function tasksOf(groups: readonly RolloutGroup[]): TaskEpisodes[] {
  const roots = new Map<string, RolloutGroup>();
  for (const group of groups) {
    const name = firstNameOf(group);
    if (group.grows === undefined && !roots.has(name)) roots.set(name, group);
  }
  return groups.flatMap((group) => {
    if (group.grows !== undefined && roots.has(group.grows)) return [];
    const name = firstNameOf(group);
    const parts = roots.get(name) === group ? groups.filter(({ grows }) => grows === name) : [];
    const episodesOf = (task: number) =>
      [group, ...parts].flatMap(({ episodes }) => episodes.filter((episode) => episode.task === task));
    return group.tasks.map(({ ref, promptTokens, learntBehind }, task) => ({
      ref,
      promptTokens: learntBehind ?? promptTokens,
      hindsight: learntBehind !== undefined,
      weights: group.weights,
      episodes: episodesOf(task),
    }));
  });
}

/** Episodes that branched off, as if they had not. */
const fromTheirBeginning = (task: TaskEpisodes): TaskEpisodes => ({
  ...task,
  episodes: task.episodes.map((episode) => {
    const { inherited: _, ...whole } = episode;
    return whole;
  }),
});

/** What a group was called when it was sampled: judged anew by dearer rungs it has a name that tells so. */
const firstNameOf = ({ id }: RolloutGroup): string => id.split('.')[0]!;

/** Whether credit can be given for an episode: what has none is not scored either. */
export const isCredited = ({ outcome }: Episode, { truncated }: Pick<RewardSpec, 'truncated'>): boolean =>
  outcome !== undefined && trainableReward(outcome, truncated) !== null;

/**
 * Scores of sampled tokens, by name: one entry for each token of the completions, end to end in the order of the groups,
 * their tasks and episodes, of those episodes that have a trainable reward.
 */
export type Scores = Partial<Record<Score, Float32Array>>;

/** What credit may read besides the groups. */
export interface Beside {
  scores?: Scores;
  /** One greedy sample of each task. */
  greedy?: readonly RolloutGroup[];
}

/** What a step's batch is made by, of all that is said of it. */
export type CreditRequest = Pick<BatchRequest, 'algorithm' | 'reward' | 'keepGroups'>;

/** What the episodes of a step teach, by task. */
export interface StepLessons {
  /** As `tasksOf` has them; an episode that branched off is one from its beginning on where the method learns whole ones. */
  tasks: readonly TaskEpisodes[];
  /** Those that were not learnt from before. */
  fresh: readonly TaskEpisodes[];
  /** How the method sees them. */
  credited: readonly CreditGroup[];
  lessonsOf: ReadonlyMap<TaskEpisodes, readonly Lesson[]>;
  scoresOf: ReadonlyMap<Episode, Sample['scores']>;
  scales: EnvironmentScale[];
}

/**
 * What a step's episodes teach, as the method says: its credit, per sampled token. Episodes without a trainable reward
 * are left out. Where only part of the groups is kept, the lessons of the others are left out.
 *
 * Of a group that was learnt from before, with other verdicts, every member whose advantage changed is taught the
 * difference, also where only the group's mean and deviation did that: what was taught is taken back, so that all
 * lessons together are those of the last verdicts.
 */
export function stepLessons(
  groups: readonly RolloutGroup[],
  { algorithm, reward, keepGroups = 1 }: CreditRequest,
  beside: Beside = {},
): StepLessons {
  const tasks = learnsWhole(algorithm) ? tasksOf(groups).map(fromTheirBeginning) : tasksOf(groups);
  const scoresOf = scoresByEpisode(tasks, reward, beside.scores ?? {});
  // What is learnt late is on today's scale as it is and as it was, and so is the difference.
  const scales = reward.normalization ? rewardScales(groups, reward.truncated) : [];
  const scaleOf = ({ ref }: TaskEpisodes) =>
    scales.find(({ environment }) => environment === ref.environment) ?? NO_SCALE;
  const greedyOf = greedyRewards(beside.greedy ?? [], reward, scaleOf);
  const groupOf = (
    task: TaskEpisodes,
    outcomeOf: (episode: Episode) => Outcome | undefined,
  ): CreditGroup => ({
    environment: task.ref.environment,
    ...(task.hindsight && { hindsight: true }),
    samples: task.episodes.map((episode) =>
      sampleOf(episode, outcomeOf(episode), reward, scaleOf(task), scoresOf.get(episode) ?? {}),
    ),
    greedy: greedyOf.get(nameOf(task.ref)) ?? null,
  });
  const now = (task: TaskEpisodes) => groupOf(task, ({ outcome }) => outcome);
  const before = (task: TaskEpisodes) => groupOf(task, ({ learntAs }) => learntAs);

  const fresh = tasks.filter((task) => !isLate(task));
  const credited = fresh.map(now);
  const lessonsOf = new Map<TaskEpisodes, Lesson[]>(fresh.map((task) => [task, []]));
  const kept = mostDeviating(credited, keepGroups);
  for (const lesson of giveCredit(algorithm, credited)) {
    if (kept.has(lesson.group)) lessonsOf.get(fresh[lesson.group]!)!.push(lesson);
  }
  for (const task of tasks.filter(isLate)) {
    lessonsOf.set(task, changed(giveCredit(algorithm, [now(task)]), giveCredit(algorithm, [before(task)])));
  }
  return { tasks, fresh, credited, lessonsOf, scoresOf, scales };
}

/** Learnt from before, with other verdicts. */
const isLate = ({ episodes }: TaskEpisodes): boolean => episodes.some(({ learntAs }) => learntAs);

/**
 * `stepLessons` as the sequences of a batch. Those of groups without variance have an advantage of zero and stay, for the
 * loss is a mean over them too, and updates are cut from all; the learner passes over what cannot move it. A step in which
 * nothing moves the weights is none.
 */
export function trainingSequences(
  groups: readonly RolloutGroup[],
  request: CreditRequest & Pick<BatchRequest, 'plan'> & Partial<Pick<BatchRequest, 'policy'>>,
  beside: Beside = {},
): {
  sequences: TrainSequence[];
  taughtTokens: number;
  degenerateGroups: number;
  trees?: number;
  scales?: EnvironmentScale[];
} {
  const { plan, policy, reward } = request;
  const { tasks, fresh, credited, lessonsOf, scoresOf, scales } = stepLessons(groups, request, beside);
  const sequences = tasks.flatMap((task) => {
    const late = isLate(task) || (policy !== undefined && task.weights !== policy);
    return lessonsOf
      .get(task)!
      .map((lesson) =>
        sequenceOf(
          lesson.promptOf === undefined
            ? task
            : { ...task, promptTokens: fresh[lesson.promptOf]!.promptTokens },
          lesson,
          scoresOf.get(task.episodes[lesson.sample]!) ?? {},
          late,
        ),
      );
  });
  const longest = sequences.reduce(
    (most, { label, tokens }) => (label === 0 ? most : Math.max(most, tokens.length)),
    0,
  );
  const teaches = plan.movesAll || [...lessonsOf.values()].flat().some(isMoving);
  const compared = credited.filter(({ hindsight }) => !hindsight);
  const hasContrast = plan.refillBy === 'correctness' ? mixesSuccess : tellsApart;
  return {
    // A completion after a longer prompt than its own may have no room in the model.
    sequences: teaches
      ? sequences.filter(({ label, tokens }) => label !== 0 || tokens.length <= longest)
      : [],
    taughtTokens: fresh.reduce((sum, task) => sum + taughtTokens(task, lessonsOf.get(task)!), 0),
    degenerateGroups: compared.filter((group) => !hasContrast(group)).length,
    ...(groups.some(({ grows }) => grows !== undefined) && { trees: compared.length }),
    ...(reward.normalization && { scales }),
  };
}

/** Below it an advantage is one of rounding. */
export const ROUNDING = 1e-9;

/** Whether the lesson moves the policy, or its critic. */
export const isMoving = ({ advantages, returns }: Lesson): boolean =>
  returns !== undefined || advantages.some((advantage) => Math.abs(advantage) > ROUNDING);

/** Sampled tokens of a task's episodes that some lesson is about which moves the policy, each counted once. */
function taughtTokens({ episodes }: TaskEpisodes, lessons: readonly Lesson[]): number {
  const moving = lessons.filter(isMoving);
  return episodes.reduce((sum, episode, sample) => {
    const about = moving.filter((lesson) => lesson.sample === sample);
    const own = ownMask(episode);
    return (
      sum + own.filter((bit, at) => bit === 1 && about.some(({ mask }) => (mask?.[at] ?? 1) === 1)).length
    );
  }, 0);
}

/** What lessons now say beyond what they said before; each has one advantage for all tokens of its sample. */
function changed(now: readonly Lesson[], before: readonly Lesson[]): Lesson[] {
  const saidOf = (lessons: readonly Lesson[], sample: number): number[] | undefined =>
    lessons.find((lesson) => lesson.sample === sample)?.advantages;
  const samples = [...new Set([...now, ...before].map(({ sample }) => sample))].toSorted((a, b) => a - b);
  return samples
    .map((sample): Lesson => {
      const [is, was] = [saidOf(now, sample), saidOf(before, sample)];
      const advantages = (is ?? was)!.map((_, i) => (is?.[i] ?? 0) - (was?.[i] ?? 0));
      return { group: 0, sample, advantages };
    })
    .filter(({ advantages }) => advantages.some((lesson) => Math.abs(lesson) > SMALLEST_LESSON));
}

/** Throws RangeError where the scores are of other episodes than these. */
function scoresByEpisode(
  tasks: readonly TaskEpisodes[],
  reward: RewardSpec,
  scores: Scores,
): Map<Episode, Sample['scores']> {
  const of = new Map<Episode, Sample['scores']>();
  const named = Object.entries(scores);
  if (named.length === 0) return of;
  let at = 0;
  for (const episode of tasks.flatMap(({ episodes }) => episodes)) {
    if (!isCredited(episode, reward)) continue;
    const end = at + episode.tokens.length;
    of.set(episode, Object.fromEntries(named.map(([name, values]) => [name, values.subarray(at, end)])));
    at = end;
  }
  for (const [name, values] of named) {
    if (values.length !== at) throw new RangeError(`${values.length} ${name} for ${at} tokens`);
  }
  return of;
}

const nameOf = ({ environment, split, level, index }: TaskRef): string =>
  JSON.stringify([environment, split, level, index]);

function greedyRewards(
  groups: readonly RolloutGroup[],
  { truncated }: RewardSpec,
  scaleOf: (task: TaskEpisodes) => RewardScale,
): Map<string, number> {
  const rewards = new Map<string, number>();
  for (const task of tasksOf(groups)) {
    const outcome = task.episodes[0]?.outcome;
    const earned = outcome ? scaledOutcome(outcome, truncated, scaleOf(task)) : null;
    if (earned !== null) rewards.set(nameOf(task.ref), earned);
  }
  return rewards;
}

function sampleOf(
  episode: Episode,
  outcome: Outcome | undefined,
  reward: RewardSpec,
  scale: RewardScale,
  scores: Sample['scores'],
): Sample {
  const turns = turnsOf(episode, outcome ? turnRewards(reward, outcome) : null, scale);
  const inherited = episode.inherited?.turns ?? 0;
  return {
    reward: outcome ? scaledOutcome(outcome, reward.truncated, scale) : null,
    success: outcome ? succeeded(reward.components, outcome) : null,
    tokens: episode.tokens,
    mask: ownMask(episode),
    turns: turns.slice(inherited),
    before: turns.slice(0, inherited),
    samplerLogprobs: episode.samplerLogprobs,
    scores,
    truncated: outcome?.kind === 'truncated',
  };
}

/** Without what another sample has sampled, and learns from. */
export const ownMask = ({ mask, inherited }: Episode): (0 | 1)[] =>
  inherited ? mask.map((bit, at) => (at < inherited.tokens ? 0 : bit)) : mask;

const turnsOf = (
  { turns }: Episode,
  rewards: readonly number[] | null,
  { deviation }: RewardScale,
): SampleTurn[] =>
  turns.map(({ start, end }, i) => ({
    start,
    end,
    // A part of the whole: on its scale, but for the mean, which is taken off the whole.
    reward: (rewards?.[i] ?? 0) / deviation,
    // No observation is the prompt, not even an empty one.
    state: i === 0 ? 'prompt' : `read ${turns[i - 1]!.observation?.text ?? ''}`,
  }));

function sequenceOf(
  { promptTokens, episodes }: TaskEpisodes,
  { sample, advantages, mask, returns, pair, label, teacher }: Lesson,
  { values }: Sample['scores'],
  late: boolean,
): TrainSequence {
  const { tokens, samplerLogprobs, kept } = episodes[sample]!;
  // Nothing behind the last token that a lesson is about has a part in it.
  const end = mask ? mask.lastIndexOf(1) + 1 : tokens.length;
  const nothing = promptTokens.map(() => 0);
  const afterPrompt = (perToken: ArrayLike<number>): number[] => [
    ...nothing,
    ...Array.from(perToken).slice(0, end),
  ];
  return {
    tokens: [...promptTokens, ...tokens.slice(0, end)],
    mask: afterPrompt(mask ?? ownMask(episodes[sample]!)),
    streams: {
      advantages: afterPrompt(advantages),
      samplerLogprobs: afterPrompt(samplerLogprobs),
      ...(returns && { returns: afterPrompt(returns) }),
      ...(returns && values && { values: afterPrompt(values) }),
    },
    ...(kept && { kept: [...nothing.map(() => []), ...kept.slice(0, end)] }),
    ...(late && { late }),
    ...(pair !== undefined && { pair }),
    ...(label !== undefined && { label }),
    ...(teacher !== undefined && { teacher }),
  };
}
