import { afterAll, beforeAll, expect, test } from 'vitest';
import { ids } from '../../../core/names.ts';
import type { GroupResult } from '../../../core/requests/verification.ts';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import { loadTrajectories } from '../../../store/rollout/trajectories.ts';
import { isDone } from '../../support/ended.ts';
import { killInActivity } from '../../support/kill-workers.ts';
import { killAll, processesBelow } from '../../support/processes-below.ts';
import { hasPackages } from '../../support/ready-environments.ts';
import { until } from '../../support/run-client.ts';
import { storedFacts } from '../../support/stored-facts.ts';
import { startTestInstallation } from '../../support/test-installation.ts';
import type { TestInstallation } from '../../support/test-installation.ts';
import { hardestGoal, tinySpec } from '../../support/tiny-spec.ts';

// Durable runs in environments of others, with kills of our processes and of theirs: the weights are the same.

const gym = await hasPackages('reasoning-gym');

const STEPS = 3;
const tiny = tinySpec({ maxSteps: STEPS });
const [warmStart, rl] = tiny.stages;

/** A warm start in which something of the format is learnt, and a few steps. */
function specIn(
  environments: readonly string[],
  verifier: string,
  { updates, groups }: { updates: number; groups: number },
) {
  const tasks = environments.map((environment) => ({ environment, levels: [1] }));
  const heldOut = 2 * tasks.length;
  return {
    ...tiny,
    model: { ...tiny.model, hiddenSize: 64, intermediateSize: 128, maxPositions: 512 },
    sampling: { maxTurns: 5, maxCompletionTokens: 120 },
    reward: { components: [{ verifier, role: 'outcome', weight: 1 }] },
    stages: [
      {
        ...warmStart,
        tasks,
        minibatch: 8,
        updatesPerRound: updates,
        maxRounds: 1,
        graduation: { successAtLeast: 0, tasksPerLevel: 1 },
      },
      {
        ...rl,
        tasks,
        groupsPerStep: groups,
        groupsPerWorkflow: groups,
        graduation: { successAtLeast: hardestGoal(heldOut, 1), tasks: heldOut, everySteps: STEPS },
      },
    ],
    evaluation: { tasks, count: 2 * tasks.length },
  };
}

let installation: TestInstallation;
let store: ObjectStore;
beforeAll(async () => {
  installation = await startTestInstallation({
    processes: [['orchestrator', 'verifier', 'tool'], ['rollout'], ['learner']],
    env: { GRADUS_ENVIRONMENTS: 'reasoning-gym' },
  });
  store = await ObjectStore.connect(installation.settings.store);
}, 600_000);
afterAll(async () => {
  store?.close();
  await installation?.remove();
});

const groupOf = (run: string, step: number): string => ids.group(run, 'rl', step, 0);

async function episodesOf(run: string, step: number) {
  const result = await installation.runs.client.workflow.getHandle(groupOf(run, step)).result();
  const { episodes } = await loadTrajectories(store, (result as GroupResult).trajectories!);
  return episodes;
}

/** SIGKILL to all processes that have imported a Python module, in the course of the rollout of the last step. */
async function killPython(run: string, module: string): Promise<void> {
  const pids = await until(
    async () => {
      const seen = await installation.runs.pending(groupOf(run, STEPS), 'advance');
      const found = processesBelow(module);
      return typeof seen === 'object' && seen.started && found.length > 0 ? found : undefined;
    },
    300_000,
    () => `no process of ${module} was met`,
  );
  killAll(pids);
}

async function runIn(name: string, spec: ReturnType<typeof specIn>): Promise<string> {
  const result = await (await installation.runs.start(name, spec)).result();
  expect(isDone(result.end), result.end).toBe(true);
  return result.checkpoint.weights;
}

test.skipIf(!gym)(
  'a run with tasks and verdicts of Python whose rollout worker and whose Python are killed ends with the same weights',
  async () => {
    const { runs, workers } = installation;
    const spec = specIn(['reasoning-gym-products'], 'score-answer', { updates: 20, groups: 32 });
    const alone = await runIn('gym-alone', spec);
    const handle = await runs.start('gym-killed', spec);
    await killInActivity({ workers, runs }, (step) => groupOf('gym-killed', step), 'advance', 'rollout');
    await killPython('gym-killed', 'reasoning.py');
    expect((await handle.result()).checkpoint.weights).toBe(alone);
    expect(await storedFacts(store, 'gym-killed')).toEqual(await storedFacts(store, 'gym-alone'));
    const outcomes = (await episodesOf('gym-killed', STEPS)).map(({ outcome }) => outcome!.kind);
    expect(outcomes).toContain('scored');
    expect(outcomes).not.toContain('failed');
  },
  900_000,
);
