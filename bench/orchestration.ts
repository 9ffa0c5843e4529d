import { median } from '../core/statistics/median.ts';
import type { Json } from '../core/json/json.ts';
import type { StepReport } from '../core/ports.ts';
import { tinySpec } from '../test/support/tiny-spec.ts';
import { settingsToEnv } from '../workers/settings.ts';
import { closing, interleavedRuns, benchRowsOf } from './bench.ts';
import type { Bench } from './bench.ts';
import { Child } from './child.ts';
import { signalsOf } from '../test/support/histories.ts';
import { durableRun, withInstallation, withEmptyStore } from './installations.ts';
import type { PlainMeasurement } from './plain-process.ts';
import { cutCalculator, sizeOf, WARM_START } from './specs.ts';

/**
 * What durability costs: one training, with the same seeds, as a durable run and as a plain loop in one process. Both
 * have the same algorithm, operations, kind of store and learner process, and begin with new processes and empty
 * caches; only the plain one has no Temporal on the machine, and no worker processes. Start-up is not counted.
 * Throws when the two do not end with the same weights.
 */
export const orchestrationBench: Bench = async function* (options) {
  const { quick, signal } = options;
  const spec = quick ? tinySpec() : cutCalculator({ updates: 480, steps: 12, reports: 300 });
  const { plain, durable } = await interleavedRuns<'plain' | 'durable', PlainMeasurement>(
    'one training',
    {
      plain: () =>
        withEmptyStore(options, async (settings) => {
          const env = { ...process.env, ...settingsToEnv(settings) };
          const child = Child.own('plain-process.ts', { env, signal });
          const asked = child.call('run', { spec: spec as unknown as Json }, 3_600_000);
          const { run } = await closing(asked, () => child.close());
          return run as PlainMeasurement;
        }),
      durable: () =>
        withInstallation(options, async (client) => {
          const { handle, result, seconds } = await durableRun(client, spec, options);
          const reports = signalsOf(await handle.fetchHistory(), 'stepReported');
          const steps = reports.filter(({ value }) => (value as StepReport).stage !== WARM_START);
          return { seconds, weights: result.checkpoint.weights, stepsDone: steps.map(({ at }) => at) };
        }),
    },
    (one) => `${one.seconds.toFixed(2)} s, ${stepSeconds(one).toFixed(3)} s/step, weights ${one.weights}`,
    { ...options, runs: options.runs ?? (quick ? 1 : 3), warmUps: 0 },
  );
  const digests = new Set([...plain, ...durable].map(({ weights }) => weights));
  if (digests.size > 1)
    throw new Error(
      `the runs ended with different weights, so they did not do the same work: ${[...digests].join(', ')}`,
    );
  const [{ groupsPerStep, numGenerations }, { count }] = [spec.stages[1], spec.evaluation];
  for (const [name, unit, of] of [
    [`whole run: warm start, ${sizeOf(spec)}, reports of ${count} tasks`, 's', ({ seconds }) => seconds],
    [`median RL step of ${groupsPerStep} × ${numGenerations} episodes`, 's/step', stepSeconds],
  ] satisfies [string, string, (one: PlainMeasurement) => number][])
    yield benchRowsOf('orchestration')(
      `durable vs plain loop, ${name}`,
      unit,
      'less',
      durable.map(of),
      plain.map(of),
    );
};

/** From the end of one step to the end of the next: whatever happens between steps is in it. */
const stepSeconds = ({ stepsDone }: PlainMeasurement): number =>
  median(stepsDone.slice(1).map((at, i) => (at - stepsDone[i]!) / 1000));
