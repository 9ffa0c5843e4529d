import { afterAll, beforeAll, expect, test } from 'vitest';
import { ids } from '../../../core/names.ts';
import { loadCheckpoint } from '../../../store/training/checkpoints.ts';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import { killInActivity } from '../../support/kill-workers.ts';
import { startTestInstallation } from '../../support/test-installation.ts';
import type { TestInstallation } from '../../support/test-installation.ts';
import { tinySpec } from '../../support/tiny-spec.ts';

// A run with a critic resumes as exactly as one without: its scores, and its updates after the policy's.

let installation: TestInstallation;
let store: ObjectStore;
const tiny = tinySpec({ maxSteps: 3, groupsPerStep: 32, groupsPerWorkflow: 32 });
const algorithm = {
  kind: 'ppo',
  klCoefficient: 0.01,
  critic: { pretrainingSteps: 1 },
  minibatch: 32,
  numIterations: 2,
};
const spec = {
  ...tiny,
  stages: tiny.stages.map((stage) => ({ ...stage, ...('numGenerations' in stage && { algorithm }) })),
};

beforeAll(async () => {
  installation = await startTestInstallation({
    processes: [['orchestrator', 'verifier', 'tool'], ['rollout'], ['learner']],
  });
  store = await ObjectStore.connect(installation.settings.store);
}, 600_000);

afterAll(async () => {
  store?.close();
  await installation?.remove();
});

test('a PPO run whose learner is killed while it scores and while it trains ends with the same policy and critic', async () => {
  const { runs, workers } = installation;
  const leftAlone = await (await runs.start('left-alone', spec)).result();
  const handle = await runs.start('killed', spec);
  const stage = () => ids.stage('killed', 'rl');
  await killInActivity({ workers, runs }, stage, 'scoreTokens', 'learner');
  await killInActivity({ workers, runs }, stage, 'trainStep', 'learner');
  const result = await handle.result();

  expect(result.checkpoint.weights).toBe(leftAlone.checkpoint.weights);
  const [a, b] = [
    await loadCheckpoint(store, leftAlone.checkpoint),
    await loadCheckpoint(store, result.checkpoint),
  ];
  expect(a.state.critic!.updates).toBeGreaterThan(a.state.updates);
  expect(b.state.critic).toEqual(a.state.critic);
}, 600_000);
