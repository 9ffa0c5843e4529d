import { fileURLToPath } from 'node:url';
import { signalsOf } from '../../test/support/histories.ts';
import type { StepReport } from '../../core/ports.ts';
import { inOrder, tinySpec } from '../../test/support/tiny-spec.ts';
import { benchRowsOf, interleavedRuns } from '../bench.ts';
import type { Bench } from '../bench.ts';
import { durableRun, withInstallation } from '../installations.ts';

const MODULE = fileURLToPath(new URL('heavy-tailed-calculator.ts', import.meta.url));
const LAGS = [1, 3];

interface Measured {
  /** Wall seconds of the RL stage. */
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
        ({ value }) => (value as StepReport).stage === 'rl',
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

function specOf(collect: object, quick: boolean) {
  const maxSteps = quick ? 4 : 10;
  const tiny = tinySpec({ environment: 'calculator-heavy-tailed', maxSteps, groupsPerWorkflow: 4 });
  const [warmStart, rl] = tiny.stages;
  return {
    ...tiny,
    stages: inOrder(
      { ...warmStart, tasks: [{ environment: 'calculator', levels: [1] }] },
      {
        ...rl,
        collect,
        algorithm: { ...rl.algorithm, importanceCap: 2 },
        graduation: { ...rl.graduation, everySteps: maxSteps },
      },
    ),
    evaluation: { ...tiny.evaluation, tasks: [{ environment: 'calculator', levels: [1] }], count: 200 },
  };
}
