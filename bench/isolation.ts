import { isDeepStrictEqual } from 'node:util';
import type { TaskRef } from '../core/refs.ts';
import { median } from '../core/statistics/median.ts';
import { calculatorEnvironment } from '../environments/families/calculator/environment.ts';
import type { HostRequest, AskKinds } from '../environments/host/asks.ts';
import { EnvironmentHost } from '../environments/host/environment-host.ts';
import { environmentFactsOf } from '../environments/host/facts.ts';
import { HostedEnvironment, hostedHere } from '../environments/host/hosted-environment.ts';
import { serve } from '../environments/host/serve.ts';
import { tinySpec } from '../test/support/tiny-spec.ts';
import { interleavedRuns, benchRowsOf } from './bench.ts';
import type { Bench, BenchOptions } from './bench.ts';
import { withEngine } from './installations.ts';
import { plainRun } from '../test/support/plain-run.ts';
import { bytesOfDescendants, processorMs, sum } from './processes.ts';
import { cutCalculator, sizeOf, WARM_START } from './specs.ts';

/** So many times a run asks everything: a run shorter than this could not be told from its noise. */
const REPEATS = 3;
/** Of the processor time of the demo's steps, %. */
const GOAL = 3;

const row = benchRowsOf('isolation');

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
export const isolationBench: Bench = async function* (options) {
  if (process.platform !== 'linux') throw new Error('this benchmark reads processor times from Linux');
  const runs = options.runs ?? (options.quick ? 2 : 7);
  const spec = options.quick ? tinySpec() : cutCalculator({ updates: 480, steps: 4, reports: 30 });
  const { turns, episodes, stepMs } = await recordSteps(spec, options);

  const { starts } = await interleavedRuns(
    'start of a host',
    { starts: startOfHost },
    (one) =>
      `${one.busy.toFixed(0)} ms of processor time, ${one.wall.toFixed(0)} wall, ${one.megabytes.toFixed(0)} MB`,
    { ...options, runs, warmUps: 0 },
  );
  for (const [unit, of] of [
    ['processor ms', 'busy'],
    ['wall ms', 'wall'],
    ['MB', 'megabytes'],
  ] as const)
    yield row(
      'the start of a host',
      unit,
      'less',
      starts.map((one) => one[of]),
    );

  const direct = hostedHere(calculatorEnvironment());
  const host = await EnvironmentHost.open({ modules: [] });
  try {
    const hosted = host.environments.get(direct.name)!;
    const ask = (environment: HostedEnvironment) => replay(environment, turns, options.signal);
    const [there, here] = await Promise.all([ask(hosted), ask(direct)]);
    if (!isDeepStrictEqual(withoutSeconds(there), withoutSeconds(here)))
      throw new Error('the host gave other answers than the same functions in this process');
    const cost = (environment: HostedEnvironment) => async () => {
      const [before, start] = [processorMs(), performance.now()];
      for (let i = 0; i < REPEATS; i++) await ask(environment);
      const all = REPEATS * episodes;
      return { wall: (performance.now() - start) / all, busy: (processorMs() - before) / all };
    };
    const { ours, anchor } = await interleavedRuns(
      'an episode',
      { ours: cost(hosted), anchor: cost(direct) },
      ({ busy, wall }) => `${busy.toFixed(4)} ms of processor time (${wall.toFixed(4)} wall)`,
      { ...options, runs, warmUps: 0 },
    );
    const name = `environment of ${sizeOf(spec)}, in a host vs in the process`;
    for (const of of ['busy', 'wall'] as const) {
      const each = (side: typeof ours): number[] => side.map((one) => one[of]);
      yield row(name, `${of === 'busy' ? 'processor' : of} ms/episode`, 'less', each(ours), each(anchor));
    }
    const added = ours.map(({ busy }, run) => (100 * (busy - anchor[run]!.busy)) / stepMs);
    yield row('processor time that the host adds, vs the goal', '% of a step', 'less', added, GOAL);
  } finally {
    await host.close();
  }
};

/** One host is started and ended. */
async function startOfHost() {
  const [before, start, others] = [processorMs(), performance.now(), bytesOfDescendants()];
  const host = await EnvironmentHost.open({ modules: [] });
  const [wall, busy] = [performance.now() - start, processorMs() - before];
  const megabytes = (bytesOfDescendants() - others) / 1e6;
  await host.close();
  return { wall, busy, megabytes };
}

/** What an environment was asked: asks of one turn of the event loop go together. */
type Turns = HostRequest[][];

/** Of the RL steps; `stepMs`: processor time of the median step, an episode. */
function recordSteps(spec: unknown, options: BenchOptions) {
  const recorder = recording();
  const steps: { turns: Turns; processorMs: number }[] = [];
  let since = 0;
  return withEngine(options, async (engine) => {
    await plainRun(spec, {
      ...engine,
      environments: new Map([[recorder.environment.name, recorder.environment]]),
      run: 'bench',
      onStep: ({ stage, step }) => {
        options.signal.throwIfAborted();
        const turns = recorder.take();
        const took = processorMs() - since;
        if (stage !== WARM_START) {
          steps.push({ turns, processorMs: took });
          options.say(`step ${step}: ${took.toFixed(0)} ms of processor time`);
        }
        since = processorMs();
      },
    });
    return {
      turns: steps.flatMap(({ turns }) => turns),
      episodes: sum(steps.map(({ turns }) => episodesIn(turns))),
      stepMs: median(steps.map((one) => one.processorMs / episodesIn(one.turns))),
    };
  });
}

/** The calculator in this process, and what it has been asked since `take` was last called. */
function recording() {
  const file = 'this process';
  const environment = calculatorEnvironment();
  let turns: Turns = [];
  let open = false;
  const hosted = new HostedEnvironment(environmentFactsOf(environment, file), {
    ask: (ask, { signal, heartbeat = () => undefined }) => {
      if (!open) {
        open = true;
        turns.push([]);
        setImmediate(() => (open = false));
      }
      turns.at(-1)!.push(ask);
      return serve({ environment, file }, ask, { signal, heartbeat });
    },
  });
  const take = (): Turns => turns.splice(0);
  return { environment: hosted, take };
}

/** Episodes that were judged. */
const episodesIn = (turns: Turns): number =>
  sum(turns.flat().map(({ kind, items }) => (kind === 'verdicts' ? items.length : 0)));

/** Asks again, each turn when the one before it has its answers. Gives the answers, in order. */
async function replay(environment: HostedEnvironment, turns: Turns, signal: AbortSignal): Promise<unknown[]> {
  const answers: unknown[] = [];
  for (const asks of turns)
    answers.push(await Promise.all(asks.map((ask) => askAgain(environment, ask, signal))));
  return answers;
}

function askAgain(
  environment: HostedEnvironment,
  { kind, items }: HostRequest,
  signal: AbortSignal,
): Promise<unknown> {
  if (kind === 'tasks') return environment.tasks(items as TaskRef[], { signal });
  if (kind === 'calls') {
    const calls = items as AskKinds['calls']['item'][];
    return Promise.all(calls.map(({ call, ...context }) => environment.call(call, { ...context, signal })));
  }
  if (kind !== 'verdicts') throw new Error(`a step of the demo asks for no ${kind}`);
  const judged = items as AskKinds['verdicts']['item'][];
  return environment.verdicts(judged[0]!.verifiers, judged, { signal });
}

/** How long a call took is no part of what it said. */
const withoutSeconds = (answers: unknown): unknown =>
  JSON.parse(JSON.stringify(answers, (key, value: unknown) => (key === 'seconds' ? undefined : value)));
