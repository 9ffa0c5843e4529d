import calculator from '../examples/calculator.json' with { type: 'json' };
import { rate } from '../core/statistics/intervals.ts';
import { total } from '../core/training/stage-policy.ts';
import type { TimeSplit } from '../core/time/time-split.ts';
import { percent } from '../core/percent.ts';
import { tinySpec } from '../test/support/tiny-spec.ts';
import type { Progress } from '../workflows/control/messages.ts';
import type { BenchOptions } from './bench.ts';
import { benchRow } from './bench-row.ts';
import type { BenchRow } from './bench-row.ts';
import { durableRun, withInstallation } from './durable-run.ts';

/** Success on the report's tasks after RL. */
const TARGET = 0.95;
/** Seconds within which the demo must reach it, on two cores and without a GPU. */
const LIMIT_SECONDS = 600;
const PARTS = ['rollout', 'learner', 'verification', 'data', 'tool', 'orchestration'] as const;

interface DemoTime {
  /** Wall seconds from the start of the servers to the last report. */
  total: number;
  parts: TimeSplit;
  success: number;
}

/** The demo's run, from no servers to the report after RL, and where its time goes. */
export async function* demoBench(options: BenchOptions): AsyncGenerator<BenchRow> {
  const { quick, say } = options;
  const runs = options.runs ?? 1;
  const spec = quick ? tinySpec() : calculator;
  const times: DemoTime[] = [];
  for (let run = 1; run <= runs; run++) {
    const time = await demo(spec, options);
    say(`run ${run} of ${runs}: ${percent(time.success)} after RL, ${time.total.toFixed(1)} s`);
    times.push(time);
  }
  const name = quick ? 'tiny run' : 'calculator';
  const reached = times.filter(({ success }) => success >= TARGET).length;
  const outcome = quick
    ? 'to its end'
    : `to ${percent(TARGET)}, reached in ${reached} of ${runs} runs, vs the limit`;
  const row = (what: string, of: (time: DemoTime) => number, anchor: number | null): BenchRow =>
    benchRow({
      bench: 'demo',
      case: `${name}: ${what}`,
      unit: 's',
      better: 'less',
      ours: times.map(of),
      anchor,
    });
  // A run that misses the target has no time to it.
  const limit = !quick && reached === runs ? LIMIT_SECONDS : null;
  yield row(`from no servers ${outcome}`, (time) => time.total, limit);
  for (const part of PARTS) yield row(part, (time) => time.parts[part], null);
  const inParts = ({ parts }: DemoTime): number => PARTS.reduce((sum, part) => sum + parts[part], 0);
  yield row('start-up, and what is between steps', (time) => time.total - inParts(time), null);
}

async function demo(spec: unknown, options: BenchOptions): Promise<DemoTime> {
  const start = performance.now();
  return withInstallation(options, async (client) => {
    const { handle, result } = await durableRun(client, spec, options);
    const seconds = (performance.now() - start) / 1000;
    const { seconds: parts } = await handle.query<Progress>('progress');
    if (result.after === null) throw new Error('the run ended without its last report');
    return { total: seconds, parts, success: rate(total(result.after.arms)) };
  });
}
