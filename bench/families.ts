import { execFile } from 'node:child_process';
import { setMaxListeners } from 'node:events';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { z } from 'zod';
import { percent } from '../core/percent.ts';
import { rate, wilson } from '../core/statistics/intervals.ts';
import type { Proportion } from '../core/statistics/intervals.ts';
import { median } from '../core/statistics/median.ts';
import { total } from '../core/training/stage-policy.ts';
import { TYPESCRIPT } from '../engine/own-module.ts';
import { builtInEnvironments } from '../environments/families/index.ts';
import { inThisProcess } from '../environments/host/hosted-environment.ts';
import type { HostedEnvironment } from '../environments/host/hosted-environment.ts';
import { PlayedSession } from '../environments/host/played-session.ts';
import code from '../examples/code.json' with { type: 'json' };
import retail from '../examples/retail.json' with { type: 'json' };
import searchQa from '../examples/search-qa.json' with { type: 'json' };
import sweSmall from '../examples/swe-small.json' with { type: 'json' };
import toolMath from '../examples/tool-math.json' with { type: 'json' };
import webShopBrowser from '../examples/web-shop-browser.json' with { type: 'json' };
import webShop from '../examples/web-shop.json' with { type: 'json' };
import { interleavedRuns, benchRowsOf, chosenNames } from './bench.ts';
import type { Bench, BenchOptions, BenchRow } from './bench.ts';
import { durableRun, withInstallation, withTemporaryFolder } from './installations.ts';
import { bytesOfDescendants } from './processes.ts';

/** Episodes of an expert, how many of them are open at a time, and those whose calls are timed one by one. */
const [EPISODES, OPEN, FEW] = [256, 64, 16];
/** Within which learning must be visible on two cores. */
const LIMIT_SECONDS = 1200;

/** What a family's demo learnt: success on the report's tasks, before RL and after it, and wall seconds of the run. */
interface Learnt {
  before: Proportion;
  after: Proportion;
  seconds: number;
}

/** A task family as it is measured: what its demo learns, and what its environment costs. */
interface FamilyCase {
  /** Of its environment, too. */
  name: string;
  /** Its demo, which two cores finish within twenty minutes. */
  learn: (options: BenchOptions) => Promise<Learnt>;
  /** Levels at which an expert's calls are timed: one that is learnt from scratch, and one that is not. */
  played: readonly number[];
}

export const FAMILY_CASES: readonly FamilyCase[] = [
  { name: 'tool-math', learn: learnBy(toolMath), played: [1, 5] },
  { name: 'search-qa', learn: learnBy(searchQa), played: [1, 6] },
  { name: 'swe-small', learn: learnBy(sweSmall), played: [1, 5] },
  { name: 'code', learn: learnBy(code), played: [1, 5] },
  { name: 'retail', learn: learnBy(retail), played: [1, 5] },
  { name: 'web-shop', learn: learnBy(webShop), played: [1, 5] },
  { name: 'molecules', learn: moleculesDemo, played: [1, 4] },
  { name: 'web-shop-browser', learn: learnBy(webShopBrowser), played: [1, 4] },
];

/**
 * Each task family: what its environment costs, in this process, played by its expert (calls a second with 64 episodes
 * open, the median of single calls, memory of an open episode, what is kept with one), and, but for `--quick`, what its
 * demo learns: success on the report's tasks after RL (ours) and before (anchor), %.
 */
export const familiesBench: Bench = async function* (options) {
  // Every episode listens to it.
  setMaxListeners(0, options.signal);
  const names = chosenNames(
    FAMILY_CASES.map(({ name }) => name),
    options,
  );
  for (const family of FAMILY_CASES.filter(({ name }) => names.includes(name))) {
    yield* costRows(family, options);
    if (!options.quick) yield* learningRows(family, options);
  }
};

async function* costRows({ name, played }: FamilyCase, { quick, signal, say }: BenchOptions) {
  const environment = inThisProcess(builtInEnvironments).get(name)!;
  for (const level of played) {
    const cost = await play(environment, level, quick ? FEW : EPISODES, signal);
    say(`  ${name}, level ${level}: ${Math.round(cost.speed)} calls/s`);
    const row = (what: string, unit: string, better: 'more' | 'less', value: number): BenchRow =>
      benchRowsOf('families')(`${name}, level ${level}: ${what}`, unit, better, [value]);
    yield row(`calls with ${OPEN} episodes open`, 'calls/s', 'more', cost.speed);
    yield row('one call, median', 'ms', 'less', cost.call);
    yield row('memory of an open episode', 'kB', 'less', cost.memory / 1000);
    yield row('kept with an episode', 'kB', 'less', cost.kept / 1000);
  }
}

/** Plays what the expert does in so many tasks. Throws where the environment has no expert. */
async function play(environment: HostedEnvironment, level: number, episodes: number, signal: AbortSignal) {
  const count = Math.min(episodes, environment.taskCount('test', level));
  const refs = Array.from({ length: count }, (_, index) => ({
    environment: environment.name,
    split: 'test' as const,
    level,
    index,
  }));
  const asked = refs.map((ref) => ({ ref, index: 0 }));
  const shown = await environment.demonstrations(asked, { signal });
  const scripts = shown.map((one, i) => {
    if (one instanceof Error) throw one;
    return { ref: refs[i]!, calls: one.demonstration.turns.flatMap(({ call }) => call ?? []) };
  });
  type Script = (typeof scripts)[number];

  let named = 0;
  const open = ({ ref }: Script): PlayedSession =>
    new PlayedSession(environment, ref, `bench/${level}/${named++}`);
  const toLastCall = async (session: PlayedSession, { calls }: Script): Promise<number[]> => {
    const took: number[] = [];
    for (const call of calls) {
      const start = performance.now();
      await session.call(call, { signal });
      took.push(performance.now() - start);
    }
    return took;
  };
  const toItsEnd = async (script: Script): Promise<number[]> => {
    const session = open(script);
    const took = await toLastCall(session, script);
    await session.close({ signal });
    return took;
  };
  // The first episode warms up.
  await toItsEnd(scripts[0]!);
  const single: number[] = [];
  for (const script of scripts.slice(0, FEW)) single.push(...(await toItsEnd(script)));

  const queue = scripts.values();
  let calls = 0;
  const start = performance.now();
  const player = async (): Promise<void> => {
    for (const script of queue) {
      const { length } = await toItsEnd(script);
      calls += length;
    }
  };
  await Promise.all(Array.from({ length: OPEN }, player));
  const speed = (1000 * calls) / (performance.now() - start);

  const residentBytes = (): number => process.memoryUsage.rss() + bytesOfDescendants();
  const before = residentBytes();
  const held = scripts.slice(0, OPEN).map((script) => ({ script, session: open(script) }));
  await Promise.all(held.map(({ script, session }) => toLastCall(session, script)));
  const memory = Math.max(0, (residentBytes() - before) / held.length);
  /** With the episode, so that it can go on, bytes of JSON. */
  const kept = median(
    held.map(({ session }) => (session.kept === undefined ? 0 : JSON.stringify(session.kept).length)),
  );
  await Promise.all(held.map(({ session }) => session.close({ signal })));
  return { speed, call: median(single), memory, kept };
}

async function* learningRows({ name, learn }: FamilyCase, options: BenchOptions) {
  const { learnt } = await interleavedRuns(
    name,
    { learnt: () => learn(options) },
    ({ before, after, seconds }) => `${inWords(before)} → ${inWords(after)} in ${seconds.toFixed(0)} s`,
    { ...options, runs: options.runs ?? 1, warmUps: 0 },
  );
  const success = (of: 'before' | 'after'): number[] => learnt.map((one) => 100 * rate(one[of]));
  const row = benchRowsOf('families');
  yield row(`${name}: held-out success after RL vs before`, '%', 'more', success('after'), success('before'));
  const seconds = learnt.map((one) => one.seconds);
  yield row(`${name}: the run, vs the limit`, 's', 'less', seconds, LIMIT_SECONDS);
}

/** `82.0 % [79.5, 84.3]`, with the 95 % interval. */
function inWords(arms: Proportion): string {
  const { low, high } = wilson(arms, 0.95);
  return `${percent(rate(arms))} [${(100 * low).toFixed(1)}, ${(100 * high).toFixed(1)}]`;
}

/** A run of a curriculum on an installation of its own. */
function learnBy(spec: unknown) {
  return (options: BenchOptions): Promise<Learnt> =>
    withInstallation(options, async (client) => {
      const { result, seconds } = await durableRun(client, spec, options);
      if (!result.before || !result.after) throw new Error('the run ended without its last report');
      return { before: total(result.before.arms), after: total(result.after.arms), seconds };
    });
}

const good = z.object({ good: z.object({ successes: z.int(), trials: z.int() }) });
const demoSaid = z.object({
  seconds: z.object({ total: z.number() }),
  report: z.object({ quality: z.object({ before: good, after: good }) }),
});

/**
 * The molecules' demo in a state folder of its own. Its success is what DFT says: answers that score at least 0.9. The
 * seconds are those of the run; judging its report, with DFT for every different answer, comes after them.
 */
function moleculesDemo({ say, signal }: BenchOptions): Promise<Learnt> {
  return withTemporaryFolder(async (folder) => {
    const module = fileURLToPath(new URL('../demos/molecules.ts', import.meta.url));
    const flags = ['--json', '--state-dir', folder, '--page', `${folder}/molecules.svg`];
    const limits = { signal, killSignal: 'SIGINT', maxBuffer: 2 ** 30 } as const;
    const demo = promisify(execFile)(process.execPath, ['--import', TYPESCRIPT, module, ...flags], limits);
    demo.child.stderr!.setEncoding('utf8').on('data', (text: string) => say(text.trimEnd()));
    const said = demoSaid.safeParse(JSON.parse((await demo).stdout));
    if (!said.success)
      throw new Error(`without DFT there is no figure: npm run setup:chemistry (${said.error.message})`);
    const { seconds, report } = said.data;
    const { before, after } = report.quality;
    return { before: before.good, after: after.good, seconds: seconds.total };
  });
}
