import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ids } from '../../../core/names.ts';
import type { GroupResult } from '../../../core/requests/verification.ts';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import { loadTrajectories } from '../../../store/rollout/trajectories.ts';
import { isDone } from '../../support/ended.ts';
import { killInActivity } from '../../support/kill-workers.ts';
import { protocolPython } from '../../support/protocol-servers/python.ts';
import { ServerProcess } from '../../support/protocol-servers/start.ts';
import { storedFacts } from '../../support/stored-facts.ts';
import { startTestInstallation } from '../../support/test-installation.ts';
import type { TestInstallation } from '../../support/test-installation.ts';
import { hardestGoal, tinySpec } from '../../support/tiny-spec.ts';

// A durable run over a server of the Open Reward Standard, whose sessions our processes only hold by their ids: calls that
// count are activities of the tool worker, what is looked at in between goes by the rollout worker, and that is killed.

const SERVER = path.resolve(import.meta.dirname, '../../support/protocol-servers/ors_server.py');
const STEPS = 2;
const tiny = tinySpec({ maxSteps: STEPS, groupsPerStep: 4, groupsPerWorkflow: 4 });
const [warmStart, rl] = tiny.stages;
const tasks = [{ environment: 'till', levels: [1] }];
const spec = {
  ...tiny,
  model: { ...tiny.model, hiddenSize: 64, intermediateSize: 128, maxPositions: 512 },
  sampling: { maxTurns: 8, maxCompletionTokens: 200 },
  reward: { components: [{ verifier: 'environment', role: 'outcome', weight: 1 }] },
  stages: [
    {
      ...warmStart,
      tasks,
      minibatch: 8,
      updatesPerRound: 40,
      maxRounds: 1,
      graduation: { successAtLeast: 0, tasksPerLevel: 2 },
    },
    {
      ...rl,
      tasks,
      numGenerations: 4,
      graduation: { successAtLeast: hardestGoal(2, 1), tasks: 2, everySteps: STEPS },
    },
  ],
  evaluation: { tasks, count: 2 },
};

let server: ServerProcess;
let installation: TestInstallation;
let store: ObjectStore;
beforeAll(async () => {
  server = await ServerProcess.start(await protocolPython(), [SERVER, 'PORT']);
  installation = await startTestInstallation({
    processes: [['orchestrator', 'verifier', 'tool'], ['rollout'], ['learner']],
    env: {
      GRADUS_ENVIRONMENTS: path.resolve(import.meta.dirname, '../../support/till-module.ts'),
      TILL_URL: server.url,
    },
  });
  store = await ObjectStore.connect(installation.settings.store);
}, 600_000);
afterAll(async () => {
  store?.close();
  await installation?.remove();
  await server?.kill();
});

async function episodesOf(run: string, step: number) {
  const group = installation.runs.client.workflow.getHandle(ids.group(run, 'rl', step, 0));
  const { trajectories } = (await group.result()) as GroupResult;
  return (await loadTrajectories(store, trajectories!)).episodes;
}

test('a run over a server whose rollout worker is killed while its sessions are open goes on in them and ends with the same weights', async () => {
  const { runs, workers } = installation;
  const alone = await (await runs.start('alone', spec)).result();
  expect(isDone(alone.end), alone.end).toBe(true);
  expect(alone.checkpoint.weights, 'learnt from its rewards').not.toBe(alone.reference!.weights);
  const handle = await runs.start('killed', spec);
  // It goes on with episodes that have paid already.
  const page = (step: number): string => ids.page('killed', 'rl', step, 0, 0);
  await killInActivity({ workers, runs }, page, 'resume', 'rollout');
  const killed = await handle.result();
  expect(killed.checkpoint.weights).toBe(alone.checkpoint.weights);
  expect(await storedFacts(store, 'killed')).toEqual(await storedFacts(store, 'alone'));
  const episodes = await episodesOf('killed', STEPS);
  const outcomes = episodes.map(({ outcome }) => outcome!);
  expect(outcomes.map(({ kind }) => kind)).not.toContain('failed');
  const called = episodes.flatMap(({ turns }) =>
    turns.flatMap(({ action }) => (action.kind === 'call' ? action.call.name : [])),
  );
  expect(called, 'by the tool worker and by the rollout worker').toEqual(
    expect.arrayContaining(['pay', 'count']),
  );
}, 900_000);
