import { fileURLToPath } from 'node:url';
import { signalsOf } from '../../test/support/histories.ts';
import type { StepReport } from '../../core/ports.ts';
import { inOrder } from '../../test/support/tiny-spec.ts';
import { benchRowsOf, interleavedRuns } from '../bench.ts';
import type { Bench } from '../bench.ts';
import { durableRun, withInstallation } from '../installations.ts';
import { cutCalculator, WARM_START } from '../specs.ts';

const MODULE = fileURLToPath(new URL('heavy-tailed-calculator.ts', import.meta.url));
const LAGS = [1, 3];

interface Measured {
  /** Wall seconds from the end of its first RL step to that of the last, which is measured. */
  seconds: number;
  steps: number;
  /** Held-out success of the report after it, in percent. */
  success: number;
}

/**
 * What it is worth that rollouts do not wait: the same steps on-policy and so many steps ahead of the learner, with a tool whose
 * time is log-normal (median 1 s, 99th percentile 20 s).
 */
export const pipelinedBench: Bench = async function* (options) {
  const { quick } = options;
  const env = {
    GRADUS_ENVIRONMENTS: MODULE,
    GRADUS_BENCH_TOOL_SECONDS: quick ? '0.1' : '1',
  };
  const run = (collect: object) => () =>
    withInstallation({ ...options, env }, async (client): Promise<Measured> => {
      const { handle, result } = await durableRun(client, specOf(collect, quick), options);
      const reports = signalsOf(await handle.fetchHistory(), 'stepReported').filter(
        ({ value }) => (value as StepReport).stage !== WARM_START,
      );
      const seconds = (reports.at(-1)!.at - reports[0]!.at) / 1000;
      const arms = result.after?.arms ?? [];
      const sum = (of: 'successes' | 'trials') => arms.reduce((all, arm) => all + arm[of], 0);
      return { seconds, steps: reports.length - 1, success: (100 * sum('successes')) / sum('trials') };
    });
  const sides = Object.fromEntries(
    [0, ...LAGS].map((lag) => [`lag ${lag}`, run({ kind: 'pipelined', lag })]),
  );
  const measured = await interleavedRuns(
    'one training',
    sides,
    ({ seconds, steps, success }) =>
      `${(seconds / steps).toFixed(1)} s a step, ${success.toFixed(1)} % afterwards`,
    { ...options, runs: options.runs ?? 1, warmUps: 0 },
  );
  const perStep = (of: readonly Measured[]) => of.map(({ seconds, steps }) => seconds / steps);
  const rows = benchRowsOf('pipelined');
  const onPolicy = measured['lag 0']!;
  for (const lag of LAGS) {
    const ahead = measured[`lag ${lag}`]!;
    yield rows(`a step, lag ${lag} against 0`, 's', 'less', perStep(ahead), perStep(onPolicy));
    yield rows(
      `success afterwards, lag ${lag} against 0`,
      '%',
      'more',
      ahead.map(({ success }) => success),
      onPolicy.map(({ success }) => success),
    );
  }
};

/** The main job's model after a warm start that has taught it to call, and small steps: each waits for its slowest call. */
function specOf(collect: object, quick: boolean) {
  const maxSteps = quick ? 4 : 8;
  const spec = cutCalculator({ updates: 480, steps: maxSteps, reports: 300 });
  const [warmStart, rl] = spec.stages;
  const [level] = rl.tasks;
  return {
    ...spec,
    stages: inOrder(warmStart, {
      ...rl,
      tasks: [{ ...level!, environment: 'calculator-heavy-tailed' }],
      groupsPerStep: 8,
      numGenerations: 8,
      groupsPerWorkflow: 8,
      collect,
      algorithm: { ...rl.algorithm, importanceCap: 2 },
      graduation: { ...rl.graduation, tasks: 64, everySteps: maxSteps, successAtLeast: 0.9 },
    }),
  };
}
