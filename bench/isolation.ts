import { isDeepStrictEqual } from 'node:util';
import { ObjectStore } from '../store/objects/object-store.ts';
import { PolicyPool } from '../activities/rollout/policy-pool.ts';
import { createDecoder } from '../engine/decoder/decoder.ts';
import { calculatorEnvironment } from '../environments/families/calculator/environment.ts';
import { EnvironmentHost } from '../environments/host/environment-host.ts';
import { hostedHere } from '../environments/host/hosted-environment.ts';
import type { HostedEnvironment } from '../environments/host/hosted-environment.ts';
import { tinySpec } from '../test/support/tiny-spec.ts';
import type { BenchOptions } from './bench.ts';
import { benchRow, median } from './bench-row.ts';
import type { BenchRow } from './bench-row.ts';
import { cutCalculator, sizeOf, WARM_START } from './bench-specs.ts';
import { oneThreadedLearner } from './one-threaded.ts';
import { plainRun } from './plain-run.ts';
import { withPlainStore } from './plain-store.ts';
import { bytesOfDescendants, processorMs } from './processes.ts';
import { episodesIn, recording, replay } from './recorded-asks.ts';
import type { RecordedAsks } from './recorded-asks.ts';

const RUNS = 7;
/** So many times a run asks everything: a run shorter than this could not be told from its noise. */
const REPEATS = 3;
/** Of the processor time of the demo's steps, %. */
const GOAL = 3;

const bench = 'isolation';

/**
 * What it costs that users' code runs in processes beside a worker (ADR 0025). A plain run does the demo's RL steps and
 * records what the environment is asked in them: tasks, tool calls, fast verification. The same asks, together as they
 * came, are then made of a host (ours) and of the same functions in this process (anchor), in turn.
 *
 * `processor ms/episode`: processor time of this process and the host, all threads: what is taken from the decoder and
 * the learner. `wall ms/episode`: how long it takes when nothing else is to do; in a rollout the decoder goes on with
 * other episodes meanwhile, so this is no delay of a step. `% of a step`: the processor time that isolation adds, in
 * parts of what the plain run's median step takes (rollout, verification, learner, store), decoder and learner with one
 * thread each, for threads that wait for each other spin: the goal is at most 3 %. The rows of the start are what one
 * host costs each time that it is started. Linux only.
 */
export async function* isolationBench(options: BenchOptions): AsyncGenerator<BenchRow> {
  if (process.platform !== 'linux') throw new Error('this benchmark reads processor times from Linux');
  const { quick } = options;
  const runs = options.runs ?? (quick ? 2 : RUNS);
  const spec = quick ? tinySpec() : cutCalculator({ updates: 480, steps: 4, reports: 30 });
  const recorded = await recordSteps(spec, options);
  yield* startRows(runs, options);
  yield* stepRows(recorded, sizeOf(spec), runs, options);
}

interface Recorded {
  asks: RecordedAsks;
  episodes: number;
  /** Processor time of the median step, per episode. */
  processorMs: number;
}

function recordSteps(spec: unknown, options: BenchOptions): Promise<Recorded> {
  return withPlainStore(options, async (settings) => {
    const store = await ObjectStore.connect(settings.store);
    const policies = new PolicyPool(store, () => createDecoder({ threads: 1 }));
    const learner = await oneThreadedLearner();
    const recorder = recording(calculatorEnvironment());
    const steps: { asks: RecordedAsks; processorMs: number }[] = [];
    let since = 0;
    try {
      await plainRun(spec, {
        store,
        environments: new Map([[recorder.environment.name, recorder.environment]]),
        policies,
        learner,
        run: 'bench',
        onStep: ({ stage, step }) => {
          options.signal.throwIfAborted();
          const asks = recorder.take();
          const now = processorMs();
          if (stage !== WARM_START) {
            steps.push({ asks, processorMs: now - since });
            options.say(`step ${step}: ${(now - since).toFixed(0)} ms of processor time`);
          }
          since = processorMs();
        },
      });
    } finally {
      await learner.close();
      await policies.close();
      store.close();
    }
    return {
      asks: steps.flatMap(({ asks }) => asks),
      episodes: steps.reduce((sum, { asks }) => sum + episodesIn(asks), 0),
      processorMs: median(steps.map((step) => step.processorMs / episodesIn(step.asks))),
    };
  });
}

interface Cost {
  processorMs: number;
  wallMs: number;
}

async function* stepRows(
  { asks, episodes, processorMs: step }: Recorded,
  size: string,
  runs: number,
  { say, signal }: BenchOptions,
): AsyncGenerator<BenchRow> {
  const direct = hostedHere(calculatorEnvironment());
  const host = await EnvironmentHost.open({ modules: [] });
  try {
    const hosted = host.environments.get(direct.name)!;
    const [there, here] = await Promise.all([replay(hosted, asks, signal), replay(direct, asks, signal)]);
    if (!isDeepStrictEqual(withoutSeconds(there), withoutSeconds(here)))
      throw new Error('the host gave other answers than the same functions in this process');
    const cost = async (environment: HostedEnvironment): Promise<Cost> => {
      const [before, start] = [processorMs(), performance.now()];
      for (let i = 0; i < REPEATS; i++) await replay(environment, asks, signal);
      const all = REPEATS * episodes;
      return { wallMs: (performance.now() - start) / all, processorMs: (processorMs() - before) / all };
    };
    const [ours, anchor]: [Cost[], Cost[]] = [[], []];
    for (let run = 1; run <= runs; run++) {
      ours.push(await cost(hosted));
      anchor.push(await cost(direct));
      const show = ({ processorMs, wallMs }: Cost): string =>
        `${processorMs.toFixed(4)} (${wallMs.toFixed(4)} wall)`;
      say(
        `run ${run} of ${runs}: ${show(ours.at(-1)!)} vs ${show(anchor.at(-1)!)} ms of processor time an episode`,
      );
    }
    const row = (unit: string, of: (cost: Cost) => number): BenchRow =>
      benchRow({
        bench,
        case: `environment of ${size}, in a host vs in the process`,
        unit,
        better: 'less',
        ours: ours.map(of),
        anchor: anchor.map(of),
      });
    yield row('processor ms/episode', ({ processorMs }) => processorMs);
    yield row('wall ms/episode', ({ wallMs }) => wallMs);
    yield benchRow({
      bench,
      case: 'processor time that the host adds, vs the goal',
      unit: '% of a step',
      better: 'less',
      ours: ours.map(({ processorMs }, i) => (100 * (processorMs - anchor[i]!.processorMs)) / step),
      anchor: GOAL,
    });
  } finally {
    await host.close();
  }
}

/** How long a call took is no part of what it said. */
const withoutSeconds = (answers: unknown): unknown =>
  JSON.parse(JSON.stringify(answers, (key, value: unknown) => (key === 'seconds' ? undefined : value)));

async function* startRows(runs: number, { say, signal }: BenchOptions): AsyncGenerator<BenchRow> {
  const starts: (Cost & { megabytes: number })[] = [];
  for (let run = 1; run <= runs; run++) {
    signal.throwIfAborted();
    const [before, start, others] = [processorMs(), performance.now(), bytesOfDescendants()];
    const host = await EnvironmentHost.open({ modules: [] });
    try {
      starts.push({
        wallMs: performance.now() - start,
        processorMs: processorMs() - before,
        megabytes: (bytesOfDescendants() - others) / 1e6,
      });
    } finally {
      await host.close();
    }
    const { processorMs: busy, wallMs, megabytes } = starts.at(-1)!;
    say(
      `start ${run} of ${runs}: ${busy.toFixed(0)} ms of processor time, ${wallMs.toFixed(0)} wall, ${megabytes.toFixed(0)} MB`,
    );
  }
  const row = (unit: string, of: (start: (typeof starts)[number]) => number): BenchRow =>
    benchRow({
      bench,
      case: 'the start of a host',
      unit,
      better: 'less',
      ours: starts.map(of),
      anchor: null,
    });
  yield row('processor ms', ({ processorMs }) => processorMs);
  yield row('wall ms', ({ wallMs }) => wallMs);
  yield row('MB', ({ megabytes }) => megabytes);
}
