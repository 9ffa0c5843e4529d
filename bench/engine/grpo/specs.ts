import calculator from '../../../examples/calculator.json' with { type: 'json' };
import { drawTasks } from '../../../core/training/task-draw.ts';
import { tinySpec } from '../../../test/support/tiny-spec.ts';
import type { CurriculumSpec } from '../../../core/schema/curriculum-spec.ts';
import type { RlStageSpec } from '../../../core/schema/stages/rl.ts';
import type { Environment, PlainEnvironment } from '../../../environments/contract/environment.ts';

/** What is compared, and how far. */
export interface GrpoSettings {
  /** Success on held-out tasks that a run is to reach; with 0 its first measured checkpoint does. */
  target: number;
  /** TRL is given so many times the wall time that ours took. */
  bound: number;
  /** RL steps between checkpoints that are measured. */
  everySteps: number;
  /** RL steps that ours may take. */
  maxSteps: number;
  /** Held-out tasks, one sample of each. */
  heldOut: number;
  /** RL steps of a short run, of which the first is not counted. */
  shortSteps: number;
}

const fromEnvironment = (name: string, otherwise: number): number => {
  const text = process.env[name];
  if (text === undefined) return otherwise;
  const value = Number(text);
  if (text.trim() !== '' && value > 0) return value;
  throw new RangeError(`${name} is "${text}": give a number above 0`);
};

/** `GRADUS_BENCH_GRPO_TARGET` and `GRADUS_BENCH_GRPO_BOUND` choose another target and another bound. */
export function grpoSettings(quick: boolean): GrpoSettings {
  return {
    target: fromEnvironment('GRADUS_BENCH_GRPO_TARGET', quick ? 0 : 0.9),
    bound: fromEnvironment('GRADUS_BENCH_GRPO_BOUND', 6),
    ...(quick
      ? { everySteps: 2, maxSteps: 4, heldOut: 256, shortSteps: 3 }
      : { everySteps: 5, maxSteps: 60, heldOut: 2000, shortSteps: 6 }),
  };
}

const baseOf = (quick: boolean) => {
  if (!quick) return calculator;
  const tiny = tinySpec();
  const [warmStart, stage] = tiny.stages;
  // What TRL's side knows is this reward.
  return {
    ...tiny,
    stages: [warmStart, { ...stage, algorithm: { minibatch: 32 } }],
    reward: calculator.reward,
  };
};

/** The main job's warm start and one RL step, which a run cannot do without. */
export function warmStartSpec(quick: boolean) {
  const { stages, evaluation, ...rest } = baseOf(quick);
  const [warmStart, stage] = stages;
  return {
    ...rest,
    stages: [warmStart!, { ...stage!, maxSteps: 1, groupsPerStep: 1, graduation: OUT_OF_REACH }],
    evaluation: { ...evaluation, count: FEW_TASKS },
  };
}

/**
 * The main job's RL stage, beginning with the model `from`: `steps` steps, whatever they reach, since success is
 * measured afterwards and in the same way for everybody. Every `everySteps`-th checkpoint is kept.
 */
export function rlSpec(quick: boolean, from: string, steps: number, everySteps: number) {
  const base = baseOf(quick);
  const [, stage] = base.stages;
  const { $schema: _, model: __, ...rest } = base as typeof base & Record<string, unknown>;
  return {
    ...rest,
    model: { from },
    stages: [
      {
        ...stage!,
        // The last one also measures itself, which takes time: nobody looks at it.
        maxSteps: steps + 1,
        graduation: { ...OUT_OF_REACH, everySteps: steps + 1 },
        // TRL has no tasks that come again because they were failed.
        retryFailures: 0,
      },
    ],
    evaluation: { ...base.evaluation, count: FEW_TASKS },
    retention: { keepEvery: everySteps },
  };
}

/** The stage of an `rlSpec`. */
export const stageOf = ({ stages }: Pick<CurriculumSpec, 'stages'>): RlStageSpec =>
  stages.find((stage) => stage.kind === 'rl')!;

/** A report must have some task. */
const FEW_TASKS = 3;
/** What can be reached by no run of a few steps, and is legal all the same. */
const OUT_OF_REACH = { successAtLeast: 0.97, tasks: 200 };

/** A training task as TRL's data set has it. */
export interface DumpedTask {
  prompt: string;
  answer: string;
  level: number;
}

/**
 * The tasks of `steps` RL steps, laid end to end, `groupsPerStep` a step: what the stage draws with its seed while it
 * knows nothing of how its levels do, so that all are as likely.
 */
export function dumpTasks(
  { seed }: Pick<CurriculumSpec, 'seed'>,
  stage: Pick<RlStageSpec, 'name' | 'arms' | 'groupsPerStep'>,
  steps: number,
  environments: ReadonlyMap<string, Environment>,
): DumpedTask[] {
  return Array.from({ length: steps }, (_, step) =>
    drawTasks({
      seed,
      stage: stage.name,
      step: step + 1,
      arms: stage.arms,
      count: stage.groupsPerStep,
      tasksBefore: 0,
      estimates: {},
      failures: [],
      retryFailures: 0,
    }).tasks.map((ref) => {
      const { prompt, answer } = (environments.get(ref.environment) as PlainEnvironment).task(ref);
      if (answer === undefined) throw new Error(`a task of ${ref.environment} has no answer to compare with`);
      return { prompt, answer, level: ref.level };
    }),
  ).flat();
}
