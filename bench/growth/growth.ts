import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { StepReport } from '../../core/ports.ts';
import type { Role } from '../../core/names.ts';
import { weightShapes } from '../../core/model/config.ts';
import { loadHfDirectory } from '../../engine/hf-directory.ts';
import { ObjectStore } from '../../store/objects/object-store.ts';
import { importModel } from '../../store/training/import-model.ts';
import { historiesFrom, signalsOf } from '../../test/support/histories.ts';
import { hardestGoal, inOrder, tinySpec } from '../../test/support/tiny-spec.ts';
import { benchRowsOf, chosenNames, closing } from '../bench.ts';
import type { Bench, BenchOptions } from '../bench.ts';
import { writeFullSize } from '../half-billion/model.ts';
import { halfBillionSpec, MODEL } from '../half-billion/spec.ts';
import { durableRun, withInstallation, withTemporaryFolder } from '../installations.ts';
import { sum, watchMemory } from '../processes.ts';
import { WARM_START } from '../specs.ts';

const MODULES = ['many-turns.ts', '../half-billion/babble.ts']
  .map((file) => fileURLToPath(new URL(file, import.meta.url)))
  .join(',');
/** A call of `next` takes seven, and what is said to it some more. */
const TOKENS_A_TURN = 24;

/** What a run of one size took, without its warm start. */
interface Point {
  size: number;
  seconds: number;
  bytes: number;
  megabytes: number;
  /** Turns of an episode, in the mean of all steps of RL. */
  turns: number;
}

interface Growth {
  sizes: readonly number[];
  quick: readonly number[];
  spec: (size: number) => object;
  /** Puts what the run begins with into the store, and gives the size that it has; absent: nothing, and `size`. */
  bring?: (size: number, store: ObjectStore) => Promise<number>;
  /** Processes that roll out; default 1. */
  workers?: (size: number) => number;
}

type Measure = 'seconds' | 'bytes' | 'megabytes';
const MEASURES: Record<Measure, string> = {
  seconds: 'wall time',
  bytes: 'bytes of histories',
  megabytes: 'most memory of all processes',
};

const GROWTHS: Record<string, Growth> = {
  episodes: {
    sizes: [96, 992, 10_000],
    quick: [16, 64],
    spec: (episodes) => sized({ groupsPerStep: episodes / 8 }),
  },
  turns: {
    sizes: [1, 4, 16, 64, 128],
    quick: [1, 4],
    spec: (maxTurns) => sized({ maxTurns, environment: 'many-turns', groupsPerStep: 8 }),
  },
  steps: {
    sizes: [10, 100, 1000],
    quick: [2, 4],
    spec: (maxSteps) => sized({ maxSteps, groupsPerStep: 2 }),
  },
  // Of the model, which has two layers: 14 times the square of the width, and what the vocabulary takes.
  width: {
    sizes: [64, 256, 1024],
    quick: [32, 64],
    spec: (hiddenSize) => sized({ hiddenSize, groupsPerStep: 8 }),
  },
  // Of a model that is brought and trained by LoRA: widths of Qwen2.5-0.5B's shape, whose own is the last.
  parameters: {
    sizes: [64, 256, 896],
    quick: [64, 128],
    spec: halfBillionSpec,
    bring: bringModel,
  },
  workers: {
    sizes: [1, 2, 4],
    quick: [1, 2],
    spec: () => sized({ groupsPerStep: 64 }),
    workers: (processes) => processes,
  },
};

/**
 * How what a run takes grows with what it is asked for. An exponent is that between the two largest sizes, where what is
 * always there matters least.
 */
export const growthBench: Bench = async function* (options) {
  const row = benchRowsOf('growth');
  for (const name of chosenNames(Object.keys(GROWTHS), options)) {
    const growth = GROWTHS[name]!;
    const points: Point[] = [];
    for (const size of options.quick ? growth.quick : growth.sizes) {
      const point = await measured(size, growth, options);
      options.say(
        `  ${point.size} ${name}: ${point.seconds.toFixed(2)} s, ${point.bytes} bytes of histories, ${point.megabytes.toFixed(0)} MB, ${point.turns.toFixed(1)} turns an episode`,
      );
      points.push(point);
      for (const measure of Object.keys(MEASURES) as Measure[])
        yield row(`${MEASURES[measure]}, ${name}: ${point.size}`, UNITS[measure], 'less', [point[measure]]);
    }
    const [before, last] = points.slice(-2) as [Point, Point];
    for (const measure of Object.keys(MEASURES) as Measure[]) {
      const [larger, times] = [last.size / before.size, last[measure] / before[measure]];
      const between = `${MEASURES[measure]}, ${name}: ${before.size} to ${last.size}`;
      yield row(between, 'exponent', 'less', [Math.log(times) / Math.log(larger)]);
      yield row(`${between}, against so many times the ${name}`, 'times', 'less', [times], larger);
    }
  }
};

const UNITS: Record<Measure, string> = { seconds: 's', bytes: 'bytes', megabytes: 'MB' };

function measured(asked: number, { spec, workers, bring }: Growth, options: BenchOptions): Promise<Point> {
  const rollouts = Array.from({ length: workers?.(asked) ?? 1 }, (): Role[] => ['rollout']);
  const processes: Role[][] = [['orchestrator', 'verifier', 'tool'], ...rollouts, ['learner']];
  const env = { GRADUS_ENVIRONMENTS: MODULES };
  return withInstallation({ ...options, env, processes }, async (client, { settings }) => {
    const store = await ObjectStore.connect(settings.store);
    const size = await closing(bring?.(asked, store) ?? Promise.resolve(asked), async () => store.close());
    const memory = watchMemory(() => undefined);
    const { handle } = await durableRun(client, spec(asked), options);
    const megabytes = memory.stop().together / 1e6;
    const reports: { at: number; step: StepReport }[] = [];
    let bytes = 0;
    const root = { workflowId: handle.workflowId, runId: handle.firstExecutionRunId };
    for await (const workflow of historiesFrom(client, root)) {
      bytes += workflow.bytes;
      for (const { at, value } of signalsOf(workflow.history, 'stepReported'))
        reports.push({ at, step: value as StepReport });
    }
    const ends = (warmStart: boolean): number[] =>
      reports.filter(({ step }) => (step.stage === WARM_START) === warmStart).map(({ at }) => at);
    // Without a warm start, from the first step's end on: that step has the learner's graph traced, too.
    const begun = ends(true).length > 0 ? Math.max(...ends(true)) : Math.min(...ends(false));
    const seconds = (Math.max(...ends(false)) - begun) / 1000;
    const rl = reports.filter(({ step }) => step.stage !== WARM_START).map(({ step }) => step);
    const episodes = sum(rl.flatMap(({ outcomes }) => Object.values(outcomes)));
    return { size, seconds, bytes, megabytes, turns: sum(rl.map(({ turns }) => turns)) / episodes };
  });
}

/** Imports a model of random weights of this width. Gives its number of parameters. */
function bringModel(hiddenSize: number, store: ObjectStore): Promise<number> {
  return withTemporaryFolder(async (scratch) => {
    const folder = path.join(scratch, 'model');
    await writeFullSize(folder, hiddenSize);
    await importModel(store, folder, MODEL);
    const { config } = await loadHfDirectory(folder);
    return sum(weightShapes(config).map(([, shape]) => shape.reduce((a, b) => a * b, 1)));
  });
}

/** A short warm start, and RL steps of so many groups of 8 whose policy is measured on few tasks. */
function sized({
  maxSteps = 1,
  maxTurns = 3,
  environment = 'calculator',
  hiddenSize = 32,
  groupsPerStep,
}: Partial<Record<'maxSteps' | 'maxTurns' | 'hiddenSize', number>> & {
  environment?: string;
  groupsPerStep: number;
}) {
  const tiny = tinySpec({ maxSteps, groupsPerStep, environment });
  const [warmStart, rl] = tiny.stages;
  const isLong = environment === 'many-turns';
  const tasks = [{ environment, levels: [isLong ? Math.min(4, maxTurns) : 1] }];
  const headSize = hiddenSize / 2;
  return {
    ...tiny,
    model: { ...tiny.model, hiddenSize, intermediateSize: 2 * hiddenSize, headSize, maxPositions: 8192 },
    sampling: { maxTurns, maxCompletionTokens: isLong ? TOKENS_A_TURN * maxTurns : 40 },
    ...(isLong && {
      reward: { components: [{ verifier: 'format', role: 'outcome', weight: 1 }], truncated: 'train' },
    }),
    stages: inOrder(
      {
        ...warmStart,
        tasks,
        maxRounds: 1,
        updatesPerRound: 60,
        graduation: { successAtLeast: 0, tasksPerLevel: 2 },
      },
      {
        ...rl,
        maxSteps,
        groupsPerWorkflow: 8,
        graduation: { successAtLeast: hardestGoal(2, 1), tasks: 2, everySteps: maxSteps },
      },
    ),
    evaluation: { tasks, count: 2 },
  };
}
