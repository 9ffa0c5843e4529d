import { Argument, Command, InvalidArgumentError, Option } from 'commander';
import { fail } from '../cli/fail.ts';
import { untilInterrupted } from '../cli/until-interrupted.ts';
import { agentBench } from './agent.ts';
import { alarmsBench } from './alarms/alarms.ts';
import type { Bench, BenchOptions } from './bench.ts';
import { dashboardBench } from './dashboard/dashboard.ts';
import { demoBench } from './demo.ts';
import { grpoBench } from './engine/grpo.ts';
import { handoverBench } from './engine/handover.ts';
import { decodeBench, learnerEngineBench, turnsBench } from './engine/speed.ts';
import { enoughBench } from './enough.ts';
import { familiesBench } from './families.ts';
import { buildsBench, clockBench, diskBench, queueBench, stepsBench } from './faults.ts';
import { footprintBench } from './footprint.ts';
import { growthBench } from './growth/growth.ts';
import { hackingBench } from './hacking.ts';
import { halfBillionBench } from './half-billion/half-billion.ts';
import { halfBillionPeersBench } from './half-billion/peers.ts';
import { historyBench } from './history.ts';
import { isolationBench } from './isolation.ts';
import { killPlansBench } from './kill-plans.ts';
import { ladderStepsBench, ladderTimeBench } from './ladder/ladder.ts';
import { learnerBench, sharedPromptsBench } from './learner.ts';
import { claimsBench, methodsBench } from './methods/methods.ts';
import { orchestrationBench } from './orchestration.ts';
import { rooflineBench } from './engine/roofline.ts';
import { asyncBench } from './async/async.ts';
import { recipesBench } from './recipes/recipes.ts';
import { rolloutBench } from './rollout.ts';
import { sandboxBench } from './sandbox.ts';
import { tokensBench } from './tokens.ts';

const BENCHES: Record<string, Bench> = {
  agent: agentBench,
  alarms: alarmsBench,
  async: asyncBench,
  rollout: rolloutBench,
  learner: learnerBench,
  orchestration: orchestrationBench,
  history: historyBench,
  isolation: isolationBench,
  sandbox: sandboxBench,
  'shared-prompts': sharedPromptsBench,
  demo: demoBench,
  tokens: tokensBench,
  enough: enoughBench,
  dashboard: dashboardBench,
  families: familiesBench,
  footprint: footprintBench,
  growth: growthBench,
  hacking: hackingBench,
  'ladder:steps': ladderStepsBench,
  'ladder:time': ladderTimeBench,
  methods: methodsBench,
  recipes: recipesBench,
  claims: claimsBench,
  'half-billion': halfBillionBench,
  'half-billion:peers': halfBillionPeersBench,
  'engine:decode': decodeBench,
  'engine:turns': turnsBench,
  'engine:learner': learnerEngineBench,
  'engine:grpo': grpoBench,
  'engine:handover': handoverBench,
  'engine:roofline': rooflineBench,
  'faults:builds': buildsBench,
  'faults:clock': clockBench,
  'faults:disk': diskBench,
  'faults:kills': killPlansBench,
  'faults:queue': queueBench,
  'faults:steps': stepsBench,
};
const NAMES = Object.keys(BENCHES);
/** What takes half an hour, needs most of a machine's memory, or things that no machine has by itself, runs where it is asked for by name. */
const NOT_OF_ALL = /^(agent|half-billion|recipes|faults:)/;
/** Those that compare cases, which `--only` names. */
const WITH_CASES = new Set([
  'methods',
  'claims',
  'async',
  'shared-prompts',
  'families',
  'footprint',
  'growth',
  'hacking',
  'faults:builds',
  'faults:kills',
]);
/** What may be measured a seed at a time. */
const WITH_SEEDS = new Set(['recipes', 'faults:kills']);
/** What several begin with, where none is called so itself. */
const GROUPS = new Set(NAMES.map((name) => name.split(':')[0]!).filter((group) => !(group in BENCHES)));

type Written = Pick<BenchOptions, 'runs' | 'seeds' | 'only' | 'out' | 'resume'> & { quick?: true };
type OfRecipes = Omit<Written, 'seeds'> & { recipe?: string; seed?: number[] };

async function bench(name: string, options: Written): Promise<number> {
  const say = (text: string): void => void process.stderr.write(`${text}\n`);
  const stopping = new AbortController();
  const { signal } = stopping;
  signal.addEventListener('abort', () => say('\nstopping …'));
  void untilInterrupted().then(() => stopping.abort(new Error('stopped by a person')));
  const wanted = NAMES.filter(
    (one) => (name === 'all' && !NOT_OF_ALL.test(one)) || one === name || one.startsWith(`${name}:`),
  );
  for (const one of wanted) {
    say(`— ${one}`);
    try {
      for await (const row of BENCHES[one]!({ ...options, quick: options.quick ?? false, say, signal })) {
        process.stdout.write(`${JSON.stringify(row)}\n`);
      }
    } catch (error) {
      if (!signal.aborted) throw error;
      return 130;
    }
  }
  return 0;
}

const parseNames = (text: string): string[] => text.split(',').map((name) => name.trim());

function parseRuns(text: string): number {
  const runs = Number(text);
  if (!Number.isInteger(runs) || runs < 1) throw new InvalidArgumentError('a number of runs is 1 or more');
  return runs;
}

function parseSeeds(text: string): number[] {
  const seeds = parseNames(text).map((name) => (name === '' ? NaN : Number(name)));
  if (!seeds.every((seed) => Number.isSafeInteger(seed) && seed >= 0) || new Set(seeds).size < seeds.length)
    throw new InvalidArgumentError('seeds are different whole numbers from 0, with commas between');
  return seeds;
}

new Command('bench')
  .description('Measures, and prints one JSON line a row on stdout; progress goes to stderr.')
  .addArgument(new Argument('<name>', 'what to measure').choices([...NAMES, ...GROUPS, 'all']))
  .option('--runs <n>', 'measured runs of each side (default: what the benchmark needs)', parseRuns)
  .option('--quick', 'sizes of seconds: to see that it works, not to quote')
  .option('--only <cases>', 'of what compares cases: these alone, by name, with commas between', parseNames)
  .option('--recipe <name>', 'of recipes: this one alone')
  .addOption(
    new Option(
      '--seed <seeds>',
      'of recipes and faults:kills: these alone, with commas between (default: from 11 and from 1)',
    )
      .argParser(parseSeeds)
      .conflicts('runs'),
  )
  .option('--out <folder>', 'of what leaves files behind: where (default: .gradus/bench)')
  .option('--resume', 'of what leaves files behind: go on with what they have')
  .action((name: string, { recipe, seed: seeds, ...options }: OfRecipes, command: Command) => {
    if (seeds && !WITH_SEEDS.has(name)) command.error(`error: ${name} has no seeds to choose from`);
    if (recipe !== undefined && name !== 'recipes') command.error(`error: ${name} has no recipes`);
    if (options.only && !WITH_CASES.has(name))
      command.error(`error: ${name} has no cases for --only; these have some: ${[...WITH_CASES].join(', ')}`);
    const chosen = { ...(recipe !== undefined && { only: [recipe] }), ...(seeds && { seeds }) };
    return bench(name, { ...options, ...chosen }).then((code) => process.exit(code), fail);
  })
  .parse();
