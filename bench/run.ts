import { Argument, Command, InvalidArgumentError } from 'commander';
import { fail } from '../cli/fail.ts';
import { untilInterrupted } from '../cli/until-interrupted.ts';
import { alarmsBench } from './alarms/alarms.ts';
import type { Bench } from './bench.ts';
import { decodeBench, turnsBench } from './engine/decode.ts';
import { grpoBench } from './engine/grpo.ts';
import { handoverBench } from './engine/handover.ts';
import { learnerEngineBench } from './engine/learner.ts';
import { halfBillionBench } from './half-billion/half-billion.ts';
import { ladderStepsBench, ladderTimeBench } from './ladder/ladder.ts';
import { dashboardBench } from './dashboard/dashboard.ts';
import { demoBench } from './demo.ts';
import { familiesBench } from './families/families.ts';
import { footprintBench } from './footprint.ts';
import { historyBench } from './history.ts';
import { isolationBench } from './isolation.ts';
import { learnerBench } from './learner.ts';
import { claimsBench } from './methods/claims.ts';
import { methodsBench } from './methods/methods.ts';
import { orchestrationBench } from './orchestration.ts';
import { rolloutBench } from './rollout.ts';
import { sandboxBench } from './sandbox.ts';
import { tokensBench } from './tokens.ts';

const BENCHES: Record<string, Bench> = {
  alarms: alarmsBench,
  rollout: rolloutBench,
  learner: learnerBench,
  orchestration: orchestrationBench,
  history: historyBench,
  isolation: isolationBench,
  sandbox: sandboxBench,
  demo: demoBench,
  tokens: tokensBench,
  dashboard: dashboardBench,
  families: familiesBench,
  footprint: footprintBench,
  'ladder:steps': ladderStepsBench,
  'ladder:time': ladderTimeBench,
  methods: methodsBench,
  claims: claimsBench,
  'half-billion': halfBillionBench,
  'engine:decode': decodeBench,
  'engine:turns': turnsBench,
  'engine:learner': learnerEngineBench,
  'engine:grpo': grpoBench,
  'engine:handover': handoverBench,
};
const NAMES = Object.keys(BENCHES);
/** Needs most of a machine's memory, so it runs where it is asked for by name. */
const NOT_OF_ALL = 'half-billion';
const GROUPS = new Set(NAMES.filter((name) => name.includes(':')).map((name) => name.split(':')[0]!));

interface Written {
  runs?: number;
  quick?: true;
  only?: string[];
  out?: string;
  resume?: true;
}

async function bench(name: string, options: Written): Promise<number> {
  const say = (text: string): void => void process.stderr.write(`${text}\n`);
  const stopping = new AbortController();
  const { signal } = stopping;
  signal.addEventListener('abort', () => say('\nstopping …'));
  void untilInterrupted().then(() => stopping.abort(new Error('stopped by a person')));
  const wanted = NAMES.filter(
    (one) => (name === 'all' && one !== NOT_OF_ALL) || one === name || one.startsWith(`${name}:`),
  );
  for (const one of wanted) {
    say(`— ${one}`);
    try {
      for await (const row of BENCHES[one]!({ ...options, quick: options.quick ?? false, say, signal })) {
        process.stdout.write(`${JSON.stringify(row)}\n`);
      }
    } catch (error) {
      if (error !== signal.reason) throw error;
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

new Command('bench')
  .description('Measures, and prints one JSON line a row on stdout; progress goes to stderr.')
  .addArgument(new Argument('<name>', 'what to measure').choices([...NAMES, ...GROUPS, 'all']))
  .option('--runs <n>', 'measured runs of each side (default: what the benchmark needs)', parseRuns)
  .option('--quick', 'sizes of seconds: to see that it works, not to quote')
  .option('--only <cases>', 'of what compares cases: these alone, by name, with commas between', parseNames)
  .option('--out <folder>', 'of what leaves files behind: where (default: .gradus/bench)')
  .option('--resume', 'of what leaves files behind: go on with what they have')
  .action((name: string, options: Written) => bench(name, options).then((code) => process.exit(code), fail))
  .parse();
