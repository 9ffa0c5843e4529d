import type { EvaluationResult } from '../core/requests/evaluation.ts';
import agentSpec from '../examples/agent.json' with { type: 'json' };
import { ObjectStore } from '../store/objects/object-store.ts';
import { killAndReplace } from '../test/support/kill-workers.ts';
import { killAll, processesBelow } from '../test/support/processes-below.ts';
import { until } from '../test/support/run-client.ts';
import { startTestInstallation } from '../test/support/test-installation.ts';
import type { TestInstallation } from '../test/support/test-installation.ts';
import { inOrder } from '../test/support/tiny-spec.ts';
import { benchRowsOf, closing } from './bench.ts';
import type { Bench, BenchOptions } from './bench.ts';
import { splitStages } from './specs.ts';

const HOUR_MS = 3_600_000;
const PROGRAM = 'examples/agent.mjs';

/**
 * The agent of examples/agent.json, a command for each episode, trained on sums: held-out success before and
 * after, and whether a run whose worker and agents are killed on the way ends with the weights of the one that was left alone.
 */
export const agentBench: Bench = async function* (options) {
  const installation = await startTestInstallation();
  const rows = benchRowsOf('agent');
  const measured = await closing(trained(installation, options), () => installation.remove());
  yield rows('held-out success, before as anchor', '%', 'more', [measured.after], [measured.before]);
  yield rows(
    'killed: the weights of the run that was left alone',
    'of 1',
    'more',
    [measured.same ? 1 : 0],
    1,
  );
};

async function trained(installation: TestInstallation, options: BenchOptions) {
  const { runs } = installation;
  const { say } = options;
  const spec = cut(options);
  const handle = await runs.start('killed', spec);
  const ended = handle.result();
  const early = ended.then(() => Promise.reject(new Error('the run ended before anything was killed')));
  const kills = await Promise.race([killed(installation, options), early]);
  const result = await ended;
  const [before, after] = [percent(result.before), percent(result.after)];
  say(`after ${kills}: ${before} → ${after} %, weights ${result.checkpoint.weights}`);
  const alone = await (await runs.start('alone', spec)).result();
  say(
    `left alone: ${percent(alone.before)} → ${percent(alone.after)} %, weights ${alone.checkpoint.weights}`,
  );
  return { before, after, same: alone.checkpoint.weights === result.checkpoint.weights };
}

/** The spec as it is, in 20 steps: smaller ones learnt nothing (docs/log.md). With a process for each episode they take hours. */
function cut({ quick }: Pick<BenchOptions, 'quick'>) {
  const { warmStart, rl } = splitStages(agentSpec.stages);
  const [stage] = rl;
  const steps = quick ? 2 : 20;
  const tasks = quick ? 8 : 32;
  return {
    ...agentSpec,
    stages: inOrder(
      {
        ...warmStart,
        graduation: quick ? { successAtLeast: 0, tasksPerLevel: 4 } : warmStart.graduation,
      },
      {
        ...stage!,
        maxSteps: steps,
        groupsPerStep: quick ? 2 : stage!.groupsPerStep,
        graduation: { successAtLeast: quick ? 0.6 : 0.9, tasks, everySteps: steps },
      },
    ),
    evaluation: { ...agentSpec.evaluation, count: quick ? 16 : 200 },
  };
}

/** SIGKILL to the rollout worker in its second step, and then to an agent: both while agents have had turns. */
async function killed({ settings, workers }: TestInstallation, { say }: BenchOptions): Promise<string> {
  const store = await ObjectStore.connect(settings.store);
  try {
    await until(
      async () => {
        const keys = await store.list('runs/killed/parts/by-agent/000002/');
        return keys.some(({ key }) => key.includes('/turns/')) || undefined;
      },
      HOUR_MS,
      () => 'no agent had a turn in the second step',
    );
    await killAndReplace(workers, 'rollout');
    await until(
      () => {
        const some = processesBelow(PROGRAM).slice(0, 1);
        killAll(some);
        return Promise.resolve(some.length > 0 || undefined);
      },
      HOUR_MS,
      () => 'no agent was seen at work',
    );
    const kills = 'a killed worker and a killed agent';
    say(kills);
    return kills;
  } finally {
    store.close();
  }
}

const percent = (result: EvaluationResult | null): number => {
  const [successes, trials] = [sum(result, 'successes'), sum(result, 'trials')];
  return Math.round((1000 * successes) / trials) / 10;
};

const sum = (result: EvaluationResult | null, of: 'successes' | 'trials'): number =>
  (result?.arms ?? []).reduce((all, arm) => all + arm[of], 0);
