import type { ClippedObjective } from '../core/algorithms/objective.ts';
import type { OptimizerSpec } from '../core/schema/optimizer.ts';
import calculator from '../examples/calculator.json' with { type: 'json' };
import { inOrder } from '../test/support/tiny-spec.ts';

/** What can be reached by no run of a few steps, and is legal all the same. */
const OUT_OF_REACH = 0.99;

/** What specs call their supervised stage. */
export const WARM_START = 'warm-start';

/**
 * The main job's shapes and sizes, cut to a fixed amount of work: one round of warm start, `steps` RL steps of the
 * first stage, and reports of `reports` tasks.
 */
export function cutCalculator({ updates, steps, reports }: Record<'updates' | 'steps' | 'reports', number>) {
  const { warmStart, rl } = splitStages(calculator.stages);
  const [stage] = rl;
  return {
    ...calculator,
    stages: inOrder(
      {
        ...warmStart,
        updatesPerRound: updates,
        maxRounds: 1,
        graduation: { ...warmStart.graduation, successAtLeast: 0 },
      },
      { ...stage!, maxSteps: steps, graduation: { ...stage!.graduation, successAtLeast: OUT_OF_REACH } },
    ),
    evaluation: { ...calculator.evaluation, count: reports },
  };
}

/** The warm start that a written spec begins with, and its RL stages, which do not say what kind they are. */
export function splitStages<Stage extends object>(stages: readonly Stage[]) {
  const isRl = (stage: Stage): stage is Exclude<Stage, { kind: string }> => !('kind' in stage);
  return { warmStart: stages[0] as Extract<Stage, { kind: string }>, rl: stages.filter(isRl) };
}

/** `12 RL steps of 64 × 8 episodes`, of a spec that has one RL stage after its warm start. */
export function sizeOf(spec: {
  stages: readonly [unknown, { maxSteps: number; groupsPerStep: number; numGenerations: number }];
}): string {
  const [, { maxSteps, groupsPerStep, numGenerations }] = spec.stages;
  return `${maxSteps} RL steps of ${groupsPerStep} × ${numGenerations} episodes`;
}

/** Adam where only the time and memory of a step are measured. */
export const ADAM: OptimizerSpec = {
  learningRate: 1e-4,
  warmupUpdates: 0,
  beta1: 0.9,
  beta2: 0.999,
  epsilon: 1e-8,
  maxGradientNorm: 1,
};

/** GRPO where only those are. */
export const GRPO: ClippedObjective = {
  kind: 'clipped',
  temperature: 1,
  topK: 0,
  clipRatioLow: 0.2,
  clipRatioHigh: 0.28,
  beta: 0,
  aggregation: 'token',
  maxCompletionTokens: 80,
  importanceCap: 2,
};
