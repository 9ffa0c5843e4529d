import { afterAll, beforeAll, expect, test } from 'vitest';
import { ids } from '../../../core/names.ts';
import { ObjectStore } from '../../../store/object-store.ts';
import { readSteps } from '../../../store/step-facts.ts';
import { killInActivity } from '../../support/kill-workers.ts';
import { storedFacts } from '../../support/stored-facts.ts';
import { startTestInstallation } from '../../support/test-installation.ts';
import type { TestInstallation } from '../../support/test-installation.ts';
import { tinySpec } from '../../support/tiny-spec.ts';

// Conversations whose worker is killed in their middle come to the same end: their state passes from call to call.

const tiny = tinySpec({ maxSteps: 3, environment: 'retail', groupsPerStep: 32, groupsPerWorkflow: 32 });
const [warmStart, rl] = tiny.stages;
const spec = {
  ...tiny,
  model: { ...tiny.model, hiddenSize: 48, intermediateSize: 96 },
  sampling: { maxTurns: 4, maxCompletionTokens: 90 },
  reward: {
    components: [
      { verifier: 'retail', role: 'outcome', weight: 1 },
      { verifier: 'format', role: 'bonus', weight: 0.2 },
      { verifier: 'tool-shaping', role: 'penalty', weight: 0.2 },
    ],
  },
  // One round of it: enough to speak with the customer, and to make changes that the shop refuses or takes.
  stages: [{ ...warmStart, tasks: rl.tasks, updatesPerRound: 120 }, rl],
};

let installation: TestInstallation;
let store: ObjectStore;

beforeAll(async () => {
  installation = await startTestInstallation({
    processes: [['orchestrator', 'verifier', 'tool'], ['rollout'], ['learner']],
  });
  store = await ObjectStore.connect(installation.settings.store);
}, 240_000);

afterAll(async () => {
  store?.close();
  await installation?.remove();
});

test('a run of conversations whose rollout worker is killed in their middle ends with the same weights', async () => {
  const { runs, workers } = installation;
  const leftAlone = await (await runs.start('left-alone', spec)).result();
  const killed = await runs.start('killed', spec);
  await killInActivity({ workers, runs }, (step) => ids.group('killed', 'rl', step, 0), 'advance', 'rollout');
  const result = await killed.result();

  expect(result.checkpoint.weights).toBe(leftAlone.checkpoint.weights);
  expect(await storedFacts(store, 'killed')).toEqual(await storedFacts(store, 'left-alone'));
  const said = (await readSteps(store, 'killed')).map(({ rollout }) => rollout?.calls['say'] ?? 0);
  expect(Math.max(...said)).toBeGreaterThan(50);
}, 400_000);
