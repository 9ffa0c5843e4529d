import { percent } from '../core/percent.ts';
import { rate } from '../core/statistics/intervals.ts';
import { total } from '../core/training/stage-policy.ts';
import calculator from '../examples/calculator.json' with { type: 'json' };
import { tinySpec } from '../test/support/tiny-spec.ts';
import type { Progress } from '../workflows/control/messages.ts';
import { benchRowsOf } from './bench.ts';
import type { Bench } from './bench.ts';
import { durableRun, withInstallation } from './installations.ts';
import { sum } from './processes.ts';

/** Success on the report's tasks after RL. */
const TARGET = 0.95;
/** Seconds within which the demo must reach it, on two cores and without a GPU. */
const LIMIT_SECONDS = 600;
const PARTS = ['rollout', 'learner', 'verification', 'data', 'tool', 'orchestration'] as const;

/** The demo's run, from the start of the servers to the report after RL, in wall seconds, and where its time goes. */
export const demoBench: Bench = async function* (options) {
  const { quick, say, runs = 1 } = options;
  const demo = async () => {
    const start = performance.now();
    return withInstallation(options, async (client) => {
      const { handle, result } = await durableRun(client, quick ? tinySpec() : calculator, options);
      const seconds = (performance.now() - start) / 1000;
      const { seconds: parts } = await handle.query<Progress>('progress');
      if (result.after === null) throw new Error('the run ended without its last report');
      return { seconds, parts, success: rate(total(result.after.arms)) };
    });
  };
  const times: Awaited<ReturnType<typeof demo>>[] = [];
  for (let run = 1; run <= runs; run++) {
    const time = await demo();
    say(`run ${run} of ${runs}: ${percent(time.success)} after RL, ${time.seconds.toFixed(1)} s`);
    times.push(time);
  }
  const reached = times.filter(({ success }) => success >= TARGET).length;
  const outcome = `to ${percent(TARGET)}, reached in ${reached} of ${runs} runs, vs the limit`;
  // A run that misses the target has no time to it.
  const limit = !quick && reached === runs ? LIMIT_SECONDS : null;
  const row = (what: string, of: (time: (typeof times)[number]) => number, anchor: number | null = null) =>
    benchRowsOf('demo')(`${quick ? 'tiny run' : 'calculator'}: ${what}`, 's', 'less', times.map(of), anchor);
  yield row(`from no servers ${quick ? 'to its end' : outcome}`, ({ seconds }) => seconds, limit);
  for (const part of PARTS) yield row(part, ({ parts }) => parts[part]);
  const between = ({ seconds, parts }: (typeof times)[number]): number =>
    seconds - sum(PARTS.map((part) => parts[part]));
  yield row('start-up, and what is between steps', between);
};
