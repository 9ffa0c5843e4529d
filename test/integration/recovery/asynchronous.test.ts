import { afterAll, beforeAll, expect, test } from 'vitest';
import { ids } from '../../../core/names.ts';
import { reweighStep } from '../../../runs/reweigh/reweigh.ts';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import { readSteps } from '../../../store/training/step-facts.ts';
import type { curriculum } from '../../../workflows/curriculum/curriculum.ts';
import { DONE } from '../../support/ended.ts';
import { killHits, killInActivity } from '../../support/kill-workers.ts';
import { until } from '../../support/run-client.ts';
import { recompute } from '../../support/recompute.ts';
import { startTestInstallation } from '../../support/test-installation.ts';
import type { TestInstallation } from '../../support/test-installation.ts';
import { tinySpecCollecting } from '../../support/tiny-spec.ts';

// Rollouts that wait for nobody: real servers and workers, SIGKILL, stages that continue as new while groups are in
// flight, and runs that are made again from what they have kept.

let installation: TestInstallation;

const SPEC = tinySpecCollecting({ kind: 'asynchronous', maxStaleness: 2, inFlight: 24 });

beforeAll(async () => {
  installation = await startTestInstallation({
    dynamicConfig: { 'limit.historyCount.suggestContinueAsNew': 60 },
  });
}, 600_000);

afterAll(() => installation?.remove());

const weightsOf = async (run: string, spec: object): Promise<string> => {
  const { end, checkpoint } = await (await installation.runs.start(run, spec)).result();
  expect(end).toEqual(DONE);
  return checkpoint.weights;
};

async function stepsOf(run: string) {
  const store = await ObjectStore.connect(installation.settings.store);
  const steps = await readSteps(store, run);
  store.close();
  return steps.filter(({ stage }) => stage === 'rl');
}

/** Kills the rollout worker while it samples a group of a run, whatever the group is called. */
async function killWhileSampling(run: string): Promise<void> {
  const { runs, workers } = installation;
  const query = `WorkflowType = "rolloutGroup" AND GradusRun = "${run}" AND ExecutionStatus = "Running"`;
  await until(
    async () => {
      for await (const { workflowId } of runs.client.workflow.list({ query })) {
        if (!workflowId.startsWith(`${run}/rl/`)) continue;
        if (await killHits({ runs, workers }, 'rollout', workflowId, 'advance')) return true;
      }
      return undefined;
    },
    300_000,
    () => 'no group could be hit while it was sampled',
  );
}

test('without staleness a run ends with the weights of an on-policy one', async () => {
  const plain = await weightsOf('plain', tinySpecCollecting({ kind: 'on-policy' }));
  expect(await weightsOf('none-stale', tinySpecCollecting({ kind: 'asynchronous', maxStaleness: 0 }))).toBe(
    plain,
  );
}, 600_000);

test('killed while groups are in flight, a run keeps its bound, loses nothing, and can be made again to the bit', async () => {
  const { runs, workers, settings } = installation;
  const run = await runs.start('killed', SPEC);
  await killWhileSampling('killed');
  await killInActivity({ runs, workers }, () => ids.stage('killed', 'rl'), 'trainStep', 'learner');
  const { end, checkpoint } = await run.result();
  expect(end).toEqual(DONE);
  const steps = await stepsOf('killed');
  expect(steps).toHaveLength(6);
  for (const { rollout } of steps) {
    expect(rollout!.staleness).toBeLessThanOrEqual(2);
    // Each of the 32 tasks of the step, with all its samples.
    expect(rollout!.episodes).toBe(32 * SPEC.stages[1].numGenerations);
  }
  expect(Math.max(...steps.map(({ rollout }) => rollout!.staleness!))).toBeGreaterThan(0);

  // Its groups lie under the steps whose tasks they have.
  const store = await ObjectStore.connect(settings.store);
  for (const { stageStep } of steps) {
    const { reproduced } = await reweighStep(
      store,
      { run: 'killed', stage: 'rl', step: stageStep },
      new Map(),
    );
    expect(reproduced.exactly).not.toBe(false);
  }
  store.close();

  const stdout = await recompute(installation.stateDir, 'killed');
  expect(stdout).toContain('killed and killed-recomputed do not part in the ');
  expect(stdout).toContain('all facts and the weights are the same');
  const again = await runs.client.workflow.getHandle<typeof curriculum>('killed-recomputed').result();
  expect(again.checkpoint.weights).toBe(checkpoint.weights);
  const facts = (of: typeof steps) =>
    of.map((one) => {
      const { circumstances: _, checkpoint: after, ...step } = one;
      return { ...step, weights: after.weights };
    });
  expect(facts(await stepsOf('killed-recomputed'))).toEqual(facts(steps));
}, 600_000);
