import type { TrainingPorts } from '../ports.ts';
import { stopOrThrow } from '../question.ts';
import type { CheckpointRef } from '../refs.ts';
import type { EvaluationResult, InitializeRequest } from '../requests.ts';
import type { CurriculumSpec, StageSpec } from '../spec.ts';
import type { StageEnd, StageInput, StageResult } from './stage.ts';
import type { WarmStartInput, WarmStartResult } from './warm-start.ts';
import { armName } from '../names.ts';
import { taskIndexes } from './task-draw.ts';

/** What a curriculum needs done; its stages run their own steps. */
export interface CurriculumPorts extends Pick<TrainingPorts, 'evaluate'> {
  initialize(request: InitializeRequest): Promise<CheckpointRef>;
  warmStart(input: WarmStartInput): Promise<WarmStartResult>;
  stage(input: StageInput): Promise<StageResult>;
  /** Told when the report evaluations are there, and which part of the run comes next. */
  entered(phase: string, evaluations: { before: EvaluationResult | null }): void;
}

/** Carried over continue-as-new between stages. */
export interface CurriculumState {
  checkpoint: CheckpointRef;
  /** Where RL begins: the warm start, or the model that was brought; and what the KL is measured against. */
  reference: CheckpointRef;
  before: EvaluationResult;
  /** Steps of the run so far. */
  steps: number;
  stages: { name: string; end: StageEnd; reason: string; steps: number }[];
}

export interface CurriculumResult {
  end: 'completed' | 'stopped';
  checkpoint: CheckpointRef;
  reference: CheckpointRef | null;
  /** Success before and after RL on tasks that no decision of the run has seen; null where the run stopped earlier. */
  before: EvaluationResult | null;
  after: EvaluationResult | null;
  steps: number;
  stages: CurriculumState['stages'];
}

/**
 * The whole run: a model from scratch or from a checkpoint, a warm start (which a brought model may go without), a report, RL stages in order, a report. `gate` is passed before
 * each stage and may carry the state elsewhere (continue-as-new) or stop.
 */
export async function runCurriculum(
  ports: CurriculumPorts,
  spec: CurriculumSpec,
  from: CurriculumState | null,
  gate: (state: CurriculumState) => Promise<'go' | 'stop'>,
): Promise<CurriculumResult> {
  let state = from;
  if (state === null) {
    const begun = await begin(ports, spec);
    if ('end' in begun) return begun;
    state = begun;
  }
  while (state.stages.length < spec.stages.length) {
    if ((await gate(state)) === 'stop') return stopped(state);
    const stage: StageSpec = spec.stages[state.stages.length]!;
    ports.entered(stage.name, { before: state.before });
    const result: StageResult = await ports.stage({
      spec: {
        run: spec.run,
        seed: spec.seed,
        ...(spec.lora && { lora: spec.lora }),
        ...(spec.learner && { learner: spec.learner }),
        sampling: spec.sampling,
        reward: spec.reward,
        ...(spec.verification && { verification: spec.verification }),
        retention: spec.retention,
      },
      stage,
      checkpoint: state.checkpoint,
      reference: state.reference,
      stepsBefore: state.steps,
      tasksBefore: spec.stages
        .slice(0, state.stages.length)
        .reduce((sum, { maxSteps, groupsPerStep }) => sum + taskIndexes({ maxSteps, groupsPerStep }), 0),
    });
    const { end, reason, steps } = result;
    state = {
      ...state,
      checkpoint: result.checkpoint,
      steps,
      stages: [...state.stages, { name: stage.name, end, reason, steps: steps - state.steps }],
    };
    if (end === 'stopped') return stopped(state);
  }
  ports.entered('report', { before: state.before });
  const after = await report(ports, spec, 'after', state.checkpoint).catch(stopOrThrow);
  if (after === 'stop') return stopped(state);
  return { ...stopped(state), end: 'completed', after };
}

async function begin(
  ports: CurriculumPorts,
  spec: CurriculumSpec,
): Promise<CurriculumState | CurriculumResult> {
  ports.entered('initialize', { before: null });
  const initial = await ports.initialize({
    run: spec.run,
    seed: spec.seed,
    model: spec.model,
    arms: uniqueArms(spec),
    maxCompletionTokens: spec.sampling.maxCompletionTokens,
  });
  if (spec.warmStart === null) return started(initial, 0);
  ports.entered('warm-start', { before: null });
  const warm = await ports.warmStart({ spec: { ...spec, warmStart: spec.warmStart }, checkpoint: initial });
  if (!warm.ready) return notBegun(warm.checkpoint, warm.rounds);
  return started(warm.checkpoint, warm.rounds);

  /** RL begins here. */
  async function started(
    checkpoint: CheckpointRef,
    steps: number,
  ): Promise<CurriculumState | CurriculumResult> {
    const before = await report(ports, spec, 'before', checkpoint).catch(stopOrThrow);
    if (before === 'stop') return notBegun(checkpoint, steps);
    return { checkpoint, reference: checkpoint, before, steps, stages: [] };
  }
}

/** Of a run that was stopped before RL began. */
const notBegun = (checkpoint: CheckpointRef, steps: number): CurriculumResult => ({
  end: 'stopped',
  checkpoint,
  reference: null,
  before: null,
  after: null,
  steps,
  stages: [],
});

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
    arms: spec.evaluation.arms,
    tasks: spec.evaluation.tasks,
    split: 'test',
    sampling: spec.sampling,
    reward: spec.reward,
    ...(spec.verification && { verification: spec.verification }),
  });
}

/** Every arm that the run may meet, once. */
export function uniqueArms(spec: Pick<CurriculumSpec, 'warmStart' | 'stages' | 'evaluation'>) {
  const all = [
    ...(spec.warmStart?.arms ?? []),
    ...spec.stages.flatMap((stage) => stage.arms),
    ...spec.evaluation.arms,
  ];
  return [...new Map(all.map((arm) => [armName(arm), arm])).values()];
}
