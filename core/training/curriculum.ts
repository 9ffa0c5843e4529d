import type { TrainingPorts } from '../ports.ts';
import { stopOrThrow } from '../question.ts';
import type { CheckpointRef } from '../refs.ts';
import type { EvaluationResult } from '../requests/evaluation.ts';
import type { InitializeRequest } from '../requests/run.ts';
import type { CurriculumSpec } from '../schema/curriculum-spec.ts';
import type { StageSpec } from '../schema/stages/stages.ts';
import type { Arm } from '../schema/tasks.ts';
import { earlierPoliciesOf, opponentsOf } from './earlier-policies.ts';
import type { StageEnd, StageInput, StageResult } from './stage.ts';
import type { RewardStageInput } from './reward-stage.ts';
import { storedBy } from './stored-by.ts';
import { demonstrationsOf } from './supervised-stage.ts';
import type { Shown, SupervisedInput } from './supervised-stage.ts';
import { armName, INITIALIZE } from '../names.ts';
import { taskIndexes } from './task-draw.ts';

/** What a curriculum needs done; its stages run their own steps. */
export interface CurriculumPorts extends Pick<TrainingPorts, 'evaluate'> {
  initialize(request: InitializeRequest): Promise<CheckpointRef>;
  supervised(input: SupervisedInput): Promise<StageResult>;
  stage(input: StageInput): Promise<StageResult>;
  reward(input: RewardStageInput): Promise<StageResult>;
  /** Told which part of the run comes next. */
  entered(phase: string): void;
}

/** Carried over continue-as-new between stages. */
export interface CurriculumState {
  checkpoint: CheckpointRef;
  /**
   * What the first stage that is not supervised began with: what the KL is measured against, and of which `before` is
   * the report. null before.
   */
  reference: CheckpointRef | null;
  before: EvaluationResult | null;
  /** Steps of the run so far; a round of a supervised stage is one. */
  steps: number;
  stages: FinishedStage[];
  /** By the stage that has trained them; absent where none has. */
  rewardModels?: Record<string, CheckpointRef[]>;
  /** Policies that stages ended with, by their names, as far as a stage of the run names them; absent where none does. */
  policies?: Record<string, CheckpointRef>;
}

interface FinishedStage {
  name: string;
  kind: StageSpec['kind'];
  end: StageEnd;
  reason: string;
  steps: number;
}

export interface CurriculumResult {
  /** `no-success`: the last stage that is not supervised sampled and measured no success. */
  end: 'completed' | 'no-success' | 'stopped';
  checkpoint: CheckpointRef;
  reference: CheckpointRef | null;
  /**
   * Success before the first stage that is not supervised, and after all stages, on tasks that no decision of the run has
   * seen; null where the run has not come so far.
   */
  before: EvaluationResult | null;
  after: EvaluationResult | null;
  steps: number;
  stages: FinishedStage[];
}

/**
 * The whole run: a model from scratch or from a checkpoint, stages in order, and a report before the first one that is not
 * supervised and after the last. `gate` is passed before each stage and may carry the state elsewhere (continue-as-new)
 * or stop.
 */
export async function runCurriculum(
  ports: CurriculumPorts,
  spec: CurriculumSpec,
  from: CurriculumState | null,
  gate: (state: CurriculumState) => Promise<'go' | 'stop'>,
): Promise<CurriculumResult> {
  let state = from ?? (await begin(ports, spec));
  while (state.stages.length < spec.stages.length) {
    const stage = spec.stages[state.stages.length]!;
    const beginsWith = stage.from ? state.policies![stage.from.stage]! : state.checkpoint;
    if (stage.kind !== 'supervised' && state.reference === null) {
      const before = await report(ports, spec, 'before', beginsWith).catch(stopOrThrow);
      if (before === 'stop') return stopped(state);
      state = { ...state, reference: beginsWith, before };
    }
    if ((await gate(state)) === 'stop') return stopped(state);
    ports.entered(stage.name);
    const { end, reason, checkpoint, steps, rewardModels } = await runStage(
      ports,
      spec,
      { ...state, checkpoint: beginsWith },
      stage,
    );
    const { name, kind } = stage;
    state = {
      ...state,
      ...(rewardModels && { rewardModels: { ...state.rewardModels, [name]: rewardModels } }),
      ...withPolicy(spec, state, name, checkpoint),
      checkpoint,
      steps,
      stages: [...state.stages, { name, kind, end, reason, steps: steps - state.steps }],
    };
    if (end === 'stopped') return stopped(state);
  }
  ports.entered('report');
  const after = await report(ports, spec, 'after', state.checkpoint).catch(stopOrThrow);
  if (after === 'stop') return stopped(state);
  const last = state.stages.findLast(({ kind }) => kind === 'rl');
  return { ...stopped(state), end: last?.end === 'no-success' ? 'no-success' : 'completed', after };
}

const storedRuns = ({ stages }: CurriculumSpec): string[] => [
  ...new Set(stages.flatMap((stage) => storedBy(stage)?.run ?? [])),
];

async function begin(ports: CurriculumPorts, spec: CurriculumSpec): Promise<CurriculumState> {
  ports.entered(INITIALIZE);
  const episodesOf = storedRuns(spec);
  const checkpoint = await ports.initialize({
    run: spec.run,
    seed: spec.seed,
    model: spec.model,
    arms: uniqueArms(spec),
    maxCompletionTokens: spec.sampling.maxCompletionTokens,
    ...(spec.checkpoints && {
      checkpoints: spec.checkpoints,
      speaking: spec.stages.flatMap((stage) =>
        stage.kind === 'rl' && stage.plan.hindsight?.teacher ? [stage.plan.hindsight.teacher] : [],
      ),
    }),
    ...(episodesOf.length > 0 && { episodesOf }),
    ...(spec.reward.judge && { judge: spec.reward.judge }),
  });
  const policies = withPolicy(spec, {}, INITIALIZE, checkpoint);
  return { checkpoint, reference: null, before: null, steps: 0, stages: [], ...policies };
}

/** Keeps a policy, under the name of what ended with it, where a stage names that. */
function withPolicy(
  { stages }: CurriculumSpec,
  { policies }: Pick<CurriculumState, 'policies'>,
  name: string,
  checkpoint: CheckpointRef,
): Pick<CurriculumState, 'policies'> {
  const named = stages.flatMap(earlierPoliciesOf).includes(name);
  return named ? { policies: { ...policies, [name]: checkpoint } } : {};
}

/** Those that the next stage or a later one needs. */
const stillNeeded = (
  { stages }: CurriculumSpec,
  { stages: finished, policies = {} }: CurriculumState,
): CheckpointRef[] => {
  const names = stages.slice(finished.length).flatMap(earlierPoliciesOf);
  return [...new Set(names)].flatMap((name) => policies[name] ?? []);
};

function runStage(
  ports: CurriculumPorts,
  spec: CurriculumSpec,
  state: CurriculumState,
  stage: StageSpec,
): Promise<StageResult> {
  const { run, seed, checkpoints, lora, learner, policy, agent, sampling, reward } = spec;
  const { verification, retention, stages } = spec;
  const { checkpoint, reference, steps, stages: finished, rewardModels } = state;
  const policies = stillNeeded(spec, state);
  const common = {
    run,
    seed,
    ...(lora && { lora }),
    ...(learner && { learner }),
    ...(policy && { policy }),
    ...(agent && { agent }),
    sampling,
    reward,
    retention,
  };
  const earlier = stages.slice(0, finished.length);
  if (stage.kind === 'supervised') {
    const shownBefore: Shown = { rounds: 0, tasks: 0 };
    earlier.forEach((one, i) => {
      // What is made of trajectories is no demonstration, so those after it are the same with it and without it.
      if (one.kind !== 'supervised' || one.synthesis) return;
      const rounds = finished[i]!.steps;
      shownBefore.rounds += rounds;
      shownBefore.tasks += rounds * demonstrationsOf(one);
    });
    return ports.supervised({
      spec: common,
      stage,
      checkpoint,
      reference,
      stepsBefore: steps,
      ...(rewardModels && { rewardModels: Object.values(rewardModels).flat() }),
      ...(policies.length > 0 && { policies }),
      shownBefore,
    });
  }
  if (stage.kind === 'reward')
    return ports.reward({
      spec: { run, seed, ...(lora && { lora }), ...(learner && { learner }), reward, retention },
      stage,
      checkpoint,
      reference: reference!,
      stepsBefore: steps,
      others: [...Object.values(rewardModels ?? {}).flat(), ...policies],
    });
  const opponents = opponentsOf(stage).map((name) => ({ stage: name, checkpoint: state.policies![name]! }));
  const models = reward.model && rewardModels?.[reward.model.stage];
  return ports.stage({
    spec: { ...common, ...(checkpoints && { checkpoints }), ...(verification && { verification }) },
    ...(models && { rewardModel: { models, by: reward.model!.by, deviations: reward.model!.deviations } }),
    stage,
    checkpoint,
    ...(opponents.length > 0 && { opponents }),
    ...(policies.length > 0 && { policies }),
    reference: reference!,
    stepsBefore: steps,
    tasksBefore: earlier.reduce((sum, one, i) => {
      if (one.kind !== 'rl') return sum;
      // A person may have let it take more steps than were written.
      return sum + taskIndexes({ ...one, maxSteps: Math.max(one.maxSteps, finished[i]!.steps) });
    }, 0),
  });
}

const stopped = (state: CurriculumState): CurriculumResult => ({
  end: 'stopped',
  checkpoint: state.checkpoint,
  reference: state.reference,
  before: state.before,
  after: null,
  steps: state.steps,
  stages: state.stages,
});

function report(
  ports: CurriculumPorts,
  spec: CurriculumSpec,
  name: 'before' | 'after',
  checkpoint: CheckpointRef,
): Promise<EvaluationResult> {
  return ports.evaluate({
    run: spec.run,
    seed: spec.seed,
    name,
    step: 0,
    checkpoint,
    ...(spec.policy && { policy: spec.policy }),
    ...(spec.agent && { agent: spec.agent }),
    arms: spec.evaluation.arms,
    tasks: spec.evaluation.count,
    ...(spec.evaluation.samples > 1 && { samples: spec.evaluation.samples }),
    split: 'test',
    sampling: spec.sampling,
    reward: spec.reward,
    ...(spec.verification && { verification: spec.verification }),
  });
}

/** Every arm that the run may meet, once. */
export function uniqueArms({ stages, evaluation }: Pick<CurriculumSpec, 'stages' | 'evaluation'>): Arm[] {
  const all = [...stages, evaluation].flatMap(({ arms }) => arms);
  return [...new Map(all.map((arm) => [armName(arm), arm])).values()];
}
