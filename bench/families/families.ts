import { setMaxListeners } from 'node:events';
import { rate, wilson, type Proportion } from '../../core/statistics/intervals.ts';
import { inThisProcess } from '../../environments/host/hosted-environment.ts';
import type { HostedEnvironment } from '../../environments/host/hosted-environment.ts';
import { loadEnvironments } from '../../environments/families/index.ts';
import { percent } from '../../core/percent.ts';
import type { BenchOptions } from '../bench.ts';
import { benchRow, median } from '../bench-row.ts';
import type { BenchRow, Samples } from '../bench-row.ts';
import { bytesOfDescendants } from '../processes.ts';
import { FAMILIES, type FamilyCase } from './cases.ts';
import type { Learnt } from './learnt.ts';
import { Playing, scriptsOf } from './play.ts';

/** Episodes of an expert, and how many of them are open at a time. */
const EPISODES = 256;
const QUICK_EPISODES = 16;
const OPEN = 64;
/** Within which learning must be visible on two cores. */
const LIMIT_SECONDS = 1200;

/**
 * Each task family: what its environment costs, in this process, played by its expert (calls a second with 64 episodes
 * open, the median of single calls, memory of an open episode, what is kept with one), and, but for `--quick`, what its
 * demo learns: success on the report's tasks after RL (ours) and before (anchor), %.
 */
export async function* familiesBench(options: BenchOptions): AsyncGenerator<BenchRow> {
  // Every episode listens to it.
  setMaxListeners(0, options.signal);
  const wanted = FAMILIES.filter(({ name }) => options.only?.includes(name) ?? true);
  for (const one of wanted) {
    yield* costRows(one, options);
    if (!options.quick) yield* learningRows(one, options);
  }
}

async function* costRows(family: FamilyCase, { quick, signal, say }: BenchOptions): AsyncGenerator<BenchRow> {
  const environments = inThisProcess([...(await loadEnvironments([])).values()]);
  const environment = environments.get(family.environment)!;
  for (const level of family.played) {
    const { speed, latencies, memory, kept } = await play(
      environment,
      level,
      quick ? QUICK_EPISODES : EPISODES,
      signal,
    );
    say(`  ${family.name}, level ${level}: ${Math.round(speed)} calls/s`);
    const row = (what: string, unit: string, better: Samples['better'], value: number): BenchRow =>
      benchRow({
        bench: 'families',
        case: `${family.name}, level ${level}: ${what}`,
        unit,
        better,
        ours: [value],
        anchor: null,
      });
    yield row(`calls with ${OPEN} episodes open`, 'calls/s', 'more', speed);
    yield row('one call, median', 'ms', 'less', median(latencies));
    yield row('memory of an open episode', 'kB', 'less', memory / 1000);
    yield row('kept with an episode', 'kB', 'less', kept / 1000);
  }
}

async function play(environment: HostedEnvironment, level: number, episodes: number, signal: AbortSignal) {
  const scripts = await scriptsOf(environment, level, episodes, signal);
  let named = 0;
  const open = (script: (typeof scripts)[number]): Playing =>
    new Playing(environment, script, `bench/${level}/${named++}`);
  // The first episode warms up.
  await toItsEnd(open(scripts[0]!), signal);

  const latencies: number[] = [];
  for (const script of scripts.slice(0, QUICK_EPISODES)) {
    const episode = open(script);
    for (;;) {
      const start = performance.now();
      if (!(await episode.step(signal))) break;
      latencies.push(performance.now() - start);
    }
    await episode.close(signal);
  }

  let calls = 0;
  const queue = scripts.values();
  const start = performance.now();
  await Promise.all(
    Array.from({ length: OPEN }, async () => {
      for (const script of queue) {
        const made = await toItsEnd(open(script), signal);
        // Not `calls += await …`, which would forget what the others have counted meanwhile.
        calls += made;
      }
    }),
  );
  const speed = (1000 * calls) / (performance.now() - start);

  const before = residentBytes();
  const held = scripts.slice(0, OPEN).map(open);
  await Promise.all(held.map((episode) => toLastCall(episode, signal)));
  const memory = Math.max(0, (residentBytes() - before) / held.length);
  const kept = median(held.map(({ keptBytes }) => keptBytes));
  await Promise.all(held.map((episode) => episode.close(signal)));
  return { speed, latencies, memory, kept };
}

/** Makes all calls; how many. */
async function toLastCall(episode: Playing, signal: AbortSignal): Promise<number> {
  let calls = 0;
  while (await episode.step(signal)) calls++;
  return calls;
}

async function toItsEnd(episode: Playing, signal: AbortSignal): Promise<number> {
  const calls = await toLastCall(episode, signal);
  await episode.close(signal);
  return calls;
}

const residentBytes = (): number => process.memoryUsage.rss() + bytesOfDescendants();

/** `82.0 % [79.5, 84.3]`, with the 95 % interval. */
function shown(arms: Proportion): string {
  const { low, high } = wilson(arms, 0.95);
  return `${percent(rate(arms))} [${(100 * low).toFixed(1)}, ${(100 * high).toFixed(1)}]`;
}

async function* learningRows(family: FamilyCase, options: BenchOptions): AsyncGenerator<BenchRow> {
  const runs = options.runs ?? 1;
  const results: Learnt[] = [];
  for (let run = 1; run <= runs; run++) {
    const one = await family.learn(options);
    const [before, after] = [shown(one.before), shown(one.after)];
    options.say(`${family.name}, run ${run} of ${runs}: ${before} → ${after} in ${one.seconds.toFixed(0)} s`);
    results.push(one);
  }
  const successes = (of: 'before' | 'after'): number[] => results.map((one) => 100 * rate(one[of]));
  yield benchRow({
    bench: 'families',
    case: `${family.name}: held-out success after RL vs before`,
    unit: '%',
    better: 'more',
    ours: successes('after'),
    anchor: successes('before'),
  });
  yield benchRow({
    bench: 'families',
    case: `${family.name}: the run, vs the limit`,
    unit: 's',
    better: 'less',
    ours: results.map(({ seconds }) => seconds),
    anchor: LIMIT_SECONDS,
  });
}
