import { fileURLToPath } from 'node:url';
import { signalsOf } from '../../test/support/histories.ts';
import type { StepReport } from '../../core/ports.ts';
import { inOrder } from '../../test/support/tiny-spec.ts';
import { benchRowsOf, chosenNames, interleavedRuns } from '../bench.ts';
import type { Bench } from '../bench.ts';
import { durableRun, withInstallation } from '../installations.ts';
import { cutCalculator, WARM_START } from '../specs.ts';

const MODULE = fileURLToPath(new URL('heavy-tailed-calculator.ts', import.meta.url));
interface Collecting {
  collect: object;
  groupsPerWorkflow: number;
}

/** What does not wait, by its name in the rows. One workflow a task, where groups are taken one by one. */
const AHEAD: Record<string, Collecting> = {
  'lag 1': { collect: { kind: 'pipelined', lag: 1 }, groupsPerWorkflow: 8 },
  'lag 3': { collect: { kind: 'pipelined', lag: 3 }, groupsPerWorkflow: 8 },
  'maxStaleness 1': { collect: { kind: 'asynchronous', maxStaleness: 1 }, groupsPerWorkflow: 1 },
  'maxStaleness 3': { collect: { kind: 'asynchronous', maxStaleness: 3 }, groupsPerWorkflow: 1 },
};
const ON_POLICY: Collecting = { collect: { kind: 'on-policy' }, groupsPerWorkflow: 8 };

/** Where no group waits for a tool, nothing is gained by a workflow for each. */
const BY_WHOLE_STEPS: Record<string, Collecting> = {
  'maxStaleness 1 by whole steps': {
    collect: { kind: 'asynchronous', maxStaleness: 1 },
    groupsPerWorkflow: 8,
  },
};

/** The cases: not to wait is a gain where calls are slow, and must cost next to nothing where they are not. */
const TOOLS: Record<string, { environment: string; ahead: Record<string, Collecting> }> = {
  'slow-tool': { environment: 'calculator-heavy-tailed', ahead: AHEAD },
  'fast-tool': { environment: 'calculator', ahead: { ...AHEAD, ...BY_WHOLE_STEPS } },
};

interface Measured {
  /** Wall seconds from the end of its first RL step to that of the last but one: the last is measured on held-out tasks. */
  seconds: number;
  steps: number;
  /** Held-out success of the report after it, in percent. */
  success: number;
}

/**
 * What it is worth that rollouts do not wait: the same steps on-policy, so many steps ahead of the learner, and
 * asynchronous, with a tool whose time is log-normal (median 1 s, 99th percentile 20 s), and with one that answers at once.
 */
export const asyncBench: Bench = async function* (options) {
  const { quick } = options;
  const env = {
    GRADUS_ENVIRONMENTS: MODULE,
    GRADUS_BENCH_TOOL_SECONDS: quick ? '0.1' : '1',
  };
  const rows = benchRowsOf('async');
  for (const tool of chosenNames(Object.keys(TOOLS), options)) {
    const { environment, ahead: cases } = TOOLS[tool]!;
    const run = (how: Collecting) => () =>
      withInstallation({ ...options, env }, async (client): Promise<Measured> => {
        const spec = specOf(how, environment, quick);
        const { handle, result } = await durableRun(client, spec, options);
        const reports = signalsOf(await handle.fetchHistory(), 'stepReported').filter(
          ({ value }) => (value as StepReport).stage !== WARM_START,
        );
        const seconds = (reports.at(-2)!.at - reports[0]!.at) / 1000;
        const arms = result.after?.arms ?? [];
        const sum = (of: 'successes' | 'trials') => arms.reduce((all, arm) => all + arm[of], 0);
        return { seconds, steps: reports.length - 2, success: (100 * sum('successes')) / sum('trials') };
      });
    const sides: Record<string, () => Promise<Measured>> = {
      'on-policy': run(ON_POLICY),
      ...Object.fromEntries(Object.entries(cases).map(([name, how]) => [name, run(how)])),
    };
    const measured = await interleavedRuns(
      `${tool}: one training`,
      sides,
      ({ seconds, steps, success }) =>
        `${(seconds / steps).toFixed(2)} s a step, ${success.toFixed(1)} % afterwards`,
      { ...options, runs: options.runs ?? 1, warmUps: 0 },
    );
    const perStep = (of: readonly Measured[]) => of.map(({ seconds, steps }) => seconds / steps);
    const onPolicy = measured['on-policy']!;
    for (const name of Object.keys(cases)) {
      const ahead = measured[name]!;
      yield rows(
        `${tool}: a step, ${name} against on-policy`,
        's',
        'less',
        perStep(ahead),
        perStep(onPolicy),
      );
      yield rows(
        `${tool}: success afterwards, ${name} against on-policy`,
        '%',
        'more',
        ahead.map(({ success }) => success),
        onPolicy.map(({ success }) => success),
      );
    }
  }
};

/** The main job's model after a warm start that has taught it to call, and small steps: each waits for its slowest call. */
function specOf({ collect, groupsPerWorkflow }: Collecting, environment: string, quick: boolean) {
  const maxSteps = quick ? 5 : 9;
  const spec = cutCalculator({ updates: 480, steps: maxSteps, reports: 300 });
  const [warmStart, rl] = spec.stages;
  const [level] = rl.tasks;
  return {
    ...spec,
    stages: inOrder(warmStart, {
      ...rl,
      tasks: [{ ...level!, environment }],
      groupsPerStep: 8,
      numGenerations: 8,
      groupsPerWorkflow,
      collect,
      algorithm: { ...rl.algorithm, importanceCap: 2 },
      graduation: { ...rl.graduation, tasks: 64, everySteps: maxSteps, successAtLeast: 0.9 },
    }),
  };
}
