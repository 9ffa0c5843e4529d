import { fileURLToPath } from 'node:url';
import type { StepReport } from '../../core/ports.ts';
import type { Role } from '../../core/names.ts';
import { historiesFrom, signalsOf } from '../../test/support/histories.ts';
import { hardestGoal, inOrder, tinySpec } from '../../test/support/tiny-spec.ts';
import { benchRowsOf, chosenNames } from '../bench.ts';
import type { Bench, BenchOptions } from '../bench.ts';
import { durableRun, withInstallation } from '../installations.ts';
import { sum, watchMemory } from '../processes.ts';
import { WARM_START } from '../specs.ts';

const MODULE = fileURLToPath(new URL('many-turns.ts', import.meta.url));
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
  spec: (size: number) => ReturnType<typeof sized>;
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
        `  ${size} ${name}: ${point.seconds.toFixed(2)} s, ${point.bytes} bytes of histories, ${point.megabytes.toFixed(0)} MB, ${point.turns.toFixed(1)} turns an episode`,
      );
      points.push(point);
      for (const measure of Object.keys(MEASURES) as Measure[])
        yield row(`${MEASURES[measure]}, ${name}: ${size}`, UNITS[measure], 'less', [point[measure]]);
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

function measured(size: number, { spec, workers }: Growth, options: BenchOptions): Promise<Point> {
  const rollouts = Array.from({ length: workers?.(size) ?? 1 }, (): Role[] => ['rollout']);
  const processes: Role[][] = [['orchestrator', 'verifier', 'tool'], ...rollouts, ['learner']];
  const env = { GRADUS_ENVIRONMENTS: MODULE };
  return withInstallation({ ...options, env, processes }, async (client) => {
    const memory = watchMemory(() => undefined);
    const { handle } = await durableRun(client, spec(size), options);
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
    const seconds = (Math.max(...ends(false)) - Math.max(...ends(true))) / 1000;
    const rl = reports.filter(({ step }) => step.stage !== WARM_START).map(({ step }) => step);
    const episodes = sum(rl.flatMap(({ outcomes }) => Object.values(outcomes)));
    return { size, seconds, bytes, megabytes, turns: sum(rl.map(({ turns }) => turns)) / episodes };
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
