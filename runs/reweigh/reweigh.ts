import { trainingSamples } from '../../core/algorithms/training-sample.ts';
import { reweigh } from '../../core/algorithms/reweigh.ts';
import type { ReweighableStep, ReweighedTask } from '../../core/algorithms/reweigh.ts';
import type { TrainingSample } from '../../core/algorithms/training-sample.ts';
import { GradusError } from '../../core/errors.ts';
import type { CurriculumSpec } from '../../core/schema/curriculum-spec.ts';
import type { RewardSpec } from '../../core/schema/reward.ts';
import type { RlStageSpec } from '../../core/schema/stages/rl.ts';
import type { TrainBatch } from '../../engine/learner/contract.ts';
import { changedReward, rewardFields } from '../../spec/reward-changes.ts';
import type { RewardChange, RewardField } from '../../spec/reward-changes.ts';
import { didYouMean } from '../../core/did-you-mean.ts';
import { loadBatch } from '../../store/training/batches.ts';
import { specOfRun } from '../../store/run/find-run.ts';
import { batchKey, scoresKey, stepFactsKey } from '../../store/keys.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';
import { scoresCodec } from '../../store/training/scores.ts';
import { readStep } from '../../store/training/step-facts.ts';
import { groupsOfStep } from '../episodes/step-groups.ts';

/** A step of a run, with what it would have taught by another reward. */
export interface ReweighedStep {
  run: string;
  stage: string;
  step: number;
  /** The method of the stage. */
  method: string;
  /** What may be changed, as the run has it. */
  fields: RewardField[];
  changes: RewardChange[];
  /** No spec may have the changed reward unless it says `shapingMayDominate`. */
  dominates: boolean;
  /**
   * Whether the reward as it is gives every stored reward and, to the bit, the batch that was learnt from; else what is
   * not so. `no-batch` where the step has none, because nothing of it could teach.
   */
  reproduced: { exactly: true } | { exactly: false; why: string } | { exactly: 'no-batch' };
  /** What is not recomputed, and would have been otherwise. */
  limits: string[];
  tasks: ReweighedTask[];
  totals: ReweighedTotals;
}

interface ReweighedTotals {
  tasks: number;
  episodes: number;
  /** Episodes whose trainable reward is another one, or that have one only before or only after. */
  otherRewards: number;
  /** Episodes with a token whose advantage has the other sign. */
  flipped: number;
  /** Episodes that are taught something after and not before, and the other way round. */
  begin: number;
  stop: number;
  /** Tasks that teach: before, after, those that begin to, those that stop. */
  teaching: { before: number; after: number; begin: number; stop: number };
}

/**
 * Recomputes the rewards of a step and what it teaches, for a reward in which some fields are otherwise: everything from
 * what is stored, by the functions that training uses, without asking a model or a verifier.
 *
 * Throws GradusError('store', 'no-run' | 'no-stage' | 'no-step' | 'no-spec') and what `changedReward` throws.
 */
export async function reweighStep(
  store: ObjectStore,
  { run, stage: name, step }: { run: string; stage: string; step: number },
  set: ReadonlyMap<string, string>,
): Promise<ReweighedStep> {
  const spec = await specOfRun(store, run);
  if (spec === null)
    throw new GradusError(
      'store',
      'no-spec',
      `${run} was imported, and has no reward: name a run that was trained`,
    );
  const stage = stageOf(spec, name);
  const { reward: to, changes, dominates } = changedReward(spec, set);
  const from = spec.reward;
  const facts = await readStep(store, { key: stepFactsKey(run, name, step), answerKey: null });
  const { groups, greedy } = await groupsOfStep(store, spec, stage, step);
  if (groups.length === 0)
    throw new GradusError(
      'store',
      'no-step',
      `step ${step} of stage ${name} of ${run} has no episodes in this store`,
    );
  const scores = (await store.find(scoresKey(run, name, step), scoresCodec)) ?? {};
  const { algorithm } = stage;
  const keepGroups = facts?.adjusted?.keepGroups ?? 1;
  const credited: ReweighableStep = {
    groups,
    greedy,
    scores,
    algorithm,
    keepGroups,
    movingMeans: facts?.movingMeans,
  };
  const done = reweigh(credited, { from, to });
  const batch = await store.head(batchKey(run, name, step));
  const stored = batch === undefined ? null : await loadBatch(store, batch);
  return {
    run,
    stage: name,
    step,
    method: algorithm.kind,
    fields: rewardFields(from),
    changes,
    dominates,
    reproduced: reproduced(credited, spec, stage, stored, done.otherwiseComposed),
    limits: changes.length === 0 ? [] : limitsOf(spec, stage, credited, done.unscored, to),
    tasks: done.tasks,
    totals: totalsOf(done.tasks),
  };
}

function stageOf({ run, stages }: CurriculumSpec, name: string): RlStageSpec {
  const stage = stages.find((one) => one.name === name);
  if (stage?.kind === 'rl') return stage;
  const names = stages.flatMap((one) => (one.kind === 'rl' ? [one.name] : []));
  throw new GradusError(
    'store',
    'no-stage',
    stage
      ? `stage ${name} of ${run} imitates demonstrations, which have no reward: name a stage of kind rl`
      : `${run} has no stage "${name}" that is rewarded${didYouMean(name, names)}`,
  );
}

function reproduced(
  { groups, greedy, scores, algorithm, keepGroups, movingMeans }: ReweighableStep,
  { reward }: CurriculumSpec,
  stage: RlStageSpec,
  stored: TrainBatch | null,
  otherwiseComposed: number,
): ReweighedStep['reproduced'] {
  if (otherwiseComposed > 0)
    return {
      exactly: false,
      why: `${otherwiseComposed} stored rewards are not what the spec makes of their components`,
    };
  if (stored === null) return { exactly: 'no-batch' };
  const { sequences } = trainingSamples(
    groups,
    { algorithm, plan: stage.plan, reward, ...(keepGroups !== undefined && { keepGroups }) },
    { scores, greedy, movingMeans },
  );
  const why = differenceOf(sequences, stored);
  return why === null ? { exactly: true } : { exactly: false, why };
}

/** Where the sequences of a step are not those of its batch, to the bit of every token, mask and stream; null where they are. */
function differenceOf(sequences: readonly TrainingSample[], batch: TrainBatch): string | null {
  const count = batch.offsets.length - 1;
  if (sequences.length !== count) return `${sequences.length} sequences where the batch has ${count}`;
  for (const [i, sequence] of sequences.entries()) {
    const [start, end] = [batch.offsets[i]!, batch.offsets[i + 1]!];
    const pairs: [string, ArrayLike<number>, ArrayLike<number> | undefined][] = [
      ['tokens', sequence.tokens, batch.tokens.subarray(start, end)],
      ['mask', sequence.mask, batch.mask.subarray(start, end)],
      ...Object.entries(sequence.streams).map(([name, values]): (typeof pairs)[number] => [
        name,
        Float32Array.from(values),
        batch.streams[name as keyof TrainBatch['streams']]?.subarray(start, end),
      ]),
    ];
    const other = pairs.find(([, is, was]) => was === undefined || !sameNumbers(is, was));
    if (other) return `sequence ${i + 1} of ${count} has other ${other[0]} than the batch`;
  }
  return null;
}

const sameNumbers = (one: ArrayLike<number>, other: ArrayLike<number>): boolean =>
  one.length === other.length && Array.from(one).every((value, i) => Object.is(value, other[i]));

/** What followed from rewards besides this step's credit, and stands as it was. */
function limitsOf(
  { verification }: CurriculumSpec,
  { plan, collect }: RlStageSpec,
  { groups, scores, keepGroups = 1, movingMeans }: ReweighableStep,
  unscored: number,
  to: RewardSpec,
): string[] {
  const outcomes = groups.flatMap(({ episodes }) => episodes.map(({ outcome }) => outcome));
  const abstained = outcomes.filter((outcome) => outcome?.kind === 'abstained').length;
  const decisive = to.components.find(({ role }) => role === 'outcome');
  return [
    ...(unscored > 0
      ? [`${episodes(unscored)} would be trained on and ${were(unscored)} never scored by a model: left out.`]
      : []),
    ...(abstained > 0 && decisive?.weight === 0
      ? [`${episodes(abstained)} abstained, and their other scores are not stored: left out as they were.`]
      : []),
    ...(scores.values
      ? ['The values are those of the critic that was trained by the reward as it was.']
      : []),
    ...(movingMeans ? ['The moving means are those of earlier steps by the reward as it was.'] : []),
    ...(plan.refills > 0
      ? [
          'Tasks were drawn in place of those without contrast by the reward as it was; no others can be drawn now.',
        ]
      : []),
    ...(collect.kind === 'tree' ? ['The trees grew where the reward as it was paid most.'] : []),
    ...(keepGroups < 1
      ? [
          `An alarm has the step train on ${keepGroups} of its groups: from as many of those that vary most now.`,
        ]
      : []),
    ...(verification ? ['The ladder escalated candidates by the reward as it was.'] : []),
  ];
}

const episodes = (count: number): string => `${count} ${count === 1 ? 'episode' : 'episodes'}`;
const were = (count: number): string => (count === 1 ? 'was' : 'were');

function totalsOf(tasks: readonly ReweighedTask[]): ReweighedTotals {
  const all = tasks.flatMap((task) => task.episodes);
  const count = <T>(some: readonly T[], is: (one: T) => boolean): number => some.filter(is).length;
  return {
    tasks: tasks.length,
    episodes: all.length,
    otherRewards: count(all, ({ reward }) => reward.before !== reward.after),
    flipped: count(all, ({ flipped }) => flipped > 0),
    begin: count(all, ({ advantage }) => advantage.before === null && advantage.after !== null),
    stop: count(all, ({ advantage }) => advantage.before !== null && advantage.after === null),
    teaching: {
      before: count(tasks, ({ teaches }) => teaches.before),
      after: count(tasks, ({ teaches }) => teaches.after),
      begin: count(tasks, ({ teaches }) => !teaches.before && teaches.after),
      stop: count(tasks, ({ teaches }) => teaches.before && !teaches.after),
    },
  };
}
