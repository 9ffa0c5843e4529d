import { z } from 'zod';
import type { TrainingPorts } from '../../core/ports.ts';
import type { CheckpointRef } from '../../core/refs.ts';
import type { CurriculumSpec } from '../../core/schema/curriculum-spec.ts';
import type { RlStageSpec } from '../../core/schema/stages/rl.ts';
import { succeeded } from '../../core/episode/reward.ts';
import { percent } from '../../core/percent.ts';
import { rate } from '../../core/statistics/intervals.ts';
import { total } from '../../core/training/stage-policy.ts';
import { trainStage } from '../../core/training/stage.ts';
import type { TrainBatch } from '../../engine/learner/contract.ts';
import { inThisProcess } from '../../environments/host/hosted-environment.ts';
import { builtInEnvironments } from '../../environments/families/index.ts';
import { putBatch, loadBatch } from '../../store/training/batches.ts';
import { rolloutKey } from '../../store/keys.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';
import { loadTrajectories, rolloutKeys } from '../../store/rollout/trajectories.ts';
import type { BenchOptions } from '../bench.ts';
import { openEngine, withEmptyStore } from '../installations.ts';
import { plainRun, plainTraining } from '../../test/support/plain-run.ts';
import type { PlainRunOptions } from '../../test/support/plain-run.ts';

/** What all cases of a comparison have in common. */
export interface TrialSetting {
  /** Of this setting alone: warm starts are named after it. */
  name: string;
  environment: string;
  /** What answers are told apart by, where they have several spellings. */
  canonical?: (answer: string) => string;
  /** Of each side that has none of its own. */
  reward: object;
  levels: readonly number[];
  maxTurns: number;
  maxCompletionTokens: number;
  model: object;
  /** What every trial begins after. */
  warmStart: Demonstrations;
  /** Sampled tokens, refills and greedy samples included: a trial ends with the step in which it has them. */
  budget: number;
  /** Measurements on the way, the one before the first step not counted. */
  looks: number;
  /** Tasks of each measurement. */
  tasks: number;
}

/** Fields of a supervised stage. */
export interface Demonstrations {
  updatesPerRound: number;
  successAtLeast: number;
}

/** What one side of a comparison does. */
export interface Case {
  name: string;
  /** Fields of the RL stage. */
  stage: {
    groupsPerStep: number;
    numGenerations: number;
    collect?: object;
    algorithm: object;
    optimizer: { learningRate: number };
  };
  /** Learns from a teacher: the warm start with more demonstrations. */
  taught?: true;
  /** In place of that of the setting. */
  reward?: object;
  /** Who samples what is learnt from; what is measured is sampled by the weights as they are. */
  policy?: object;
  /** What is done to each batch before it is learnt from: for what no spec can say. */
  alter?: (batch: TrainBatch) => TrainBatch;
}

export const trials = z.object({
  case: z.string(),
  seed: z.number(),
  /** Ascending; the first is the warm start, with 0 tokens. */
  points: z.array(z.object({ tokens: z.number(), success: z.number() })),
  steps: z.number(),
  /** Different right answers of the last measurement. */
  distinct: z.number(),
  /** SHA-256 of what it ended with. */
  weights: z.string(),
  seconds: z.number(),
});
export type Trial = z.output<typeof trials>;

const STAGE = 'rl';
/** The measurements of a trial. */
const AFTER = 'after';
/** More than any trial does: it ends by its tokens. */
const MOST_STEPS = 100_000;

export type RunTrial = (setting: TrialSetting, one: Case, seed: number) => Promise<Trial>;

/**
 * Trials in this process, `lanes` at a time: each lane has a decoder and a learner of one thread, for threads that wait
 * for each other leave small models' processors idle. All are gone when `use` has ended.
 */
export function withTrials<T>(
  lanes: number,
  options: BenchOptions,
  use: (lanes: RunTrial[]) => Promise<T>,
): Promise<T> {
  return withEmptyStore(options, async (settings) => {
    const environments = inThisProcess(builtInEnvironments);
    const supervised = new Map<string, Promise<WarmStart>>();
    const once = (run: string, make: () => Promise<WarmStart>): Promise<WarmStart> => {
      const made = supervised.get(run) ?? make();
      supervised.set(run, made);
      return made;
    };
    const closing: (() => Promise<void>)[] = [];
    const openLane = async (): Promise<RunTrial> => {
      const { close, ...engine } = await openEngine(settings, 1);
      closing.push(close);
      const plain = { ...engine, environments };
      return async (setting, one, seed) => {
        const shown = { setting, seed, plain, options };
        const name = `${setting.name}-${seed}`;
        const warmStart = await once(name, () => supervise(name, setting.model, setting.warmStart, shown));
        const teacher = teacherOf(name);
        if (one.taught) await once(teacher, () => supervise(teacher, { from: name }, TEACHER, shown));
        return runTrial(warmStart, { setting, one, seed }, plain, options.signal);
      };
    };
    try {
      const open: RunTrial[] = [];
      for (let lane = 0; lane < lanes; lane++) open.push(await openLane());
      return await use(open);
    } finally {
      for (const close of closing) await close();
    }
  });
}

type Plain = Omit<PlainRunOptions, 'run' | 'onStep'>;

interface WarmStart {
  /** Name of the run. */
  run: string;
  success: number;
}

/** It solves most of what the trials are measured on. */
const TEACHER: Demonstrations = { updatesPerRound: 20, successAtLeast: 0.85 };

const teacherOf = (warmStart: string): string => `${warmStart}-teacher`;

/** A run that is nothing but a supervised stage. */
async function supervise(
  run: string,
  model: object,
  { updatesPerRound, successAtLeast }: Demonstrations,
  {
    setting,
    seed,
    plain,
    options: { say, signal },
  }: { setting: TrialSetting; seed: number; plain: Plain; options: BenchOptions },
): Promise<WarmStart> {
  const start = performance.now();
  const spec = {
    ...common(setting, seed),
    model,
    reward: setting.reward,
    stages: [
      {
        kind: 'supervised',
        name: 'warm-start',
        tasks: tasksOf(setting),
        minibatch: 32,
        updatesPerRound,
        maxRounds: 200,
        optimizer: { learningRate: 0.002, warmupUpdates: 50, beta2: 0.98 },
        graduation: { successAtLeast },
      },
    ],
  };
  let rounds = 0;
  const { after } = await plainRun(spec, {
    ...plain,
    run,
    onStep: ({ stageStep }) => {
      signal.throwIfAborted();
      rounds = stageStep;
    },
  });
  const success = rate(total(after!.arms));
  say(`${run}: ${percent(success)} after ${rounds} rounds, ${seconds(start).toFixed(0)} s`);
  return { run, success };
}

/** As a person would write it; `from` names the run of the warm start. */
export const trialSpec = (setting: TrialSetting, one: Case, seed: number, from: string) => ({
  ...common(setting, seed),
  model: { from },
  reward: one.reward ?? setting.reward,
  ...(one.policy && { policy: one.policy }),
  stages: [
    {
      name: STAGE,
      tasks: tasksOf(setting),
      maxSteps: MOST_STEPS,
      graduation: { successAtLeast: 0.5, everySteps: MOST_STEPS },
      ...one.stage,
      algorithm: { ...one.stage.algorithm, ...(one.taught && { teachers: [{ from: teacherOf(from) }] }) },
    },
  ],
});

async function runTrial(
  warmStart: WarmStart,
  { setting, one, seed }: { setting: TrialSetting; one: Case; seed: number },
  plain: Plain,
  signal: AbortSignal,
): Promise<Trial> {
  const start = performance.now();
  const run = `${warmStart.run}-${one.name}`.replace(/[^A-Za-z0-9-]+/g, '-');
  const { ports, curriculum } = plainTraining({ ...plain, run }, signal);
  const spec = await curriculum.openRun(
    { spec: trialSpec(setting, one, seed, warmStart.run), workflowId: run, firstExecutionRunId: run },
    signal,
  );
  const stage = spec.stages[0] as RlStageSpec;
  const checkpoint = await curriculum.initializeModel(
    {
      run: spec.run,
      seed,
      model: spec.model,
      arms: stage.arms,
      maxCompletionTokens: spec.sampling.maxCompletionTokens,
    },
    signal,
  );
  let tokens = 0;
  const counted: TrainingPorts = {
    ...ports,
    rollout: async (requests) => {
      const results = await ports.rollout(requests);
      for (const { sampledTokens } of results) tokens += sampledTokens;
      return results;
    },
    ...(one.alter && { batch: altered(ports, one.alter, plain.store, signal) }),
  };
  const points = [{ tokens: 0, success: warmStart.success }];
  const { steps, checkpoint: learnt } = await trainStage(
    counted,
    { spec, stage, checkpoint, reference: checkpoint, stepsBefore: 0, tasksBefore: 0 },
    null,
    async (state) => {
      signal.throwIfAborted();
      if (tokens >= (points.length * setting.budget) / setting.looks) {
        const success = await measure(ports, spec, state.checkpoint, state.step);
        points.push({ tokens, success });
        await ports.retain({
          run: spec.run,
          retention: spec.retention,
          pinned: [checkpoint, state.checkpoint],
          scores: [],
        });
      }
      return tokens >= setting.budget ? 'stop' : 'go';
    },
  );
  const distinct = await distinctAnswers(plain.store, setting, spec, steps);
  return { case: one.name, seed, points, steps, distinct, weights: learnt.weights, seconds: seconds(start) };
}

/** Success on tasks that nothing is learnt from and nothing decided by, in a measurement that costs no tokens. */
async function measure(
  ports: TrainingPorts,
  { run, seed, evaluation, sampling, reward }: CurriculumSpec,
  checkpoint: CheckpointRef,
  step: number,
): Promise<number> {
  const { arms } = await ports.evaluate({
    run,
    seed,
    name: AFTER,
    step,
    checkpoint,
    arms: evaluation.arms,
    tasks: evaluation.count,
    split: 'test',
    sampling,
    reward,
  });
  return rate(total(arms));
}

/** Among the right answers of the last measurement of a stage of so many steps. */
async function distinctAnswers(
  store: ObjectStore,
  { canonical = (answer) => answer }: TrialSetting,
  { run, reward }: CurriculumSpec,
  steps: number,
): Promise<number> {
  const right = new Set<string>();
  for (const key of await rolloutKeys(store, run, AFTER)) {
    if (!key.startsWith(rolloutKey(run, AFTER, steps, '').replace(/\.json$/, ''))) continue;
    const { episodes } = await loadTrajectories(store, (await store.head(key))!);
    for (const { status, outcome } of episodes) {
      if (status.kind === 'answered' && succeeded(reward.components, outcome!))
        right.add(canonical(status.answer));
    }
  }
  return right.size;
}

/** What learns is given other batches than those that `ports` makes. */
function altered(
  ports: TrainingPorts,
  alter: (batch: TrainBatch) => TrainBatch,
  store: ObjectStore,
  signal: AbortSignal,
): TrainingPorts['batch'] {
  return async (request) => {
    const built = await ports.batch(request);
    if (built.batch === null) return built;
    const batch = alter(await loadBatch(store, built.batch, { signal }));
    const key = built.batch.key.replace(/\.safetensors$/, '-altered.safetensors');
    return { ...built, batch: (await putBatch(store, key, batch, { signal })).ref };
  };
}

const tasksOf = ({ environment, levels }: TrialSetting) => [{ environment, levels: [...levels] }];

const common = (setting: TrialSetting, seed: number) => ({
  seed,
  sampling: { maxTurns: setting.maxTurns, maxCompletionTokens: setting.maxCompletionTokens },
  evaluation: { tasks: tasksOf(setting), count: setting.tasks },
});

const seconds = (since: number): number => (performance.now() - since) / 1000;
