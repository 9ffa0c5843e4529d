import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import { loadTrajectories } from '../../../store/rollout/trajectories.ts';
import { ids } from '../../../core/names.ts';
import type { GroupResult } from '../../../core/requests/verification.ts';
import { startWorkers } from '../../../workers/all-in-one.ts';
import type { Workers } from '../../../workers/all-in-one.ts';
import { killWhileRunning } from '../../support/kill-workers.ts';
import { until } from '../../support/run-client.ts';
import { startTestInstallation } from '../../support/test-installation.ts';
import type { TestInstallation } from '../../support/test-installation.ts';
import { hardestGoal, tinySpec } from '../../support/tiny-spec.ts';

// A model large enough that threads share its products, and a tool whose answers are fed in pieces: the run still ends
// with the same bytes when it is continued with other threads.

const environment = 'calculator-verbose';
const tasks = [{ environment, levels: [1] }];
const tiny = tinySpec({ environment, maxSteps: 2, groupsPerStep: 6, groupsPerWorkflow: 6 });
const evaluation = { tasks, count: 4 };
const [warmStart, rl] = tiny.stages;
const stage = { ...rl, numGenerations: 4, algorithm: { minibatch: 8 } };
/** Learns to call the tool, so that there is something to observe. */
const start = {
  ...tiny,
  model: { hiddenSize: 128, intermediateSize: 4096, layers: 3, maxPositions: 512 },
  stages: [
    {
      ...warmStart,
      tasks,
      minibatch: 8,
      updatesPerRound: 30,
      maxRounds: 1,
      optimizer: { learningRate: 0.003 },
      graduation: { successAtLeast: 0, tasksPerLevel: 4 },
    },
    {
      ...stage,
      groupsPerStep: 1,
      maxSteps: 1,
      graduation: { successAtLeast: hardestGoal(4, 1), tasks: 4 },
    },
  ],
  evaluation,
};
const spec = {
  ...tiny,
  model: { from: 'warm' },
  sampling: { ...tiny.sampling, maxCompletionTokens: 120 },
  stages: [{ ...stage, graduation: { successAtLeast: hardestGoal(4, 1), tasks: 4, everySteps: 2 } }],
  evaluation,
};

let installation: TestInstallation;
let rollout: Workers;
let store: ObjectStore;

/** A rollout worker whose decoder has so many threads. */
const rolloutWith = (threads: number): Promise<Workers> =>
  startWorkers(
    { ...installation.settings, decoderThreads: threads },
    {
      processes: [['rollout']],
      logFile: path.join(installation.stateDir, 'logs', `rollout-${threads}.log`),
    },
  );

beforeAll(async () => {
  installation = await startTestInstallation({
    processes: [['orchestrator', 'verifier', 'tool'], ['learner']],
    env: { GRADUS_ENVIRONMENTS: path.join(import.meta.dirname, '../../support/verbose-calculator.ts') },
  });
  store = await ObjectStore.connect(installation.settings.store);
  rollout = await rolloutWith(1);
}, 600_000);

afterAll(async () => {
  store?.close();
  await rollout?.stop();
  await installation?.remove();
});

test('a run with long observations that is killed and continued with other threads ends with the same weights', async () => {
  const { runs } = installation;
  await (await runs.start('warm', start)).result();
  const leftAlone = await (await runs.start('left-alone', spec)).result();
  const { trajectories } = (await runs.client.workflow
    .getHandle(ids.group('left-alone', 'rl', 1, 0))
    .result()) as GroupResult;
  const { episodes } = await loadTrajectories(store, trajectories!);
  // Else nothing is fed in pieces, and nothing is shown.
  const observed = episodes.flatMap(({ mask }) => mask.join('').match(/0+/g) ?? []);
  expect(Math.max(...observed.map(({ length }) => length))).toBeGreaterThan(32);

  await rollout.stop();
  rollout = await rolloutWith(2);
  const handle = await runs.start('killed', spec);
  const group = ids.group('killed', 'rl', 1, 0);
  await until(
    () => killWhileRunning({ workers: rollout, runs }, 'rollout', group, 'advance'),
    300_000,
    () => 'no episode began',
  );
  await rollout.stop();
  rollout = await rolloutWith(3);
  const result = await handle.result();

  const { events } = await runs.client.workflow.getHandle(group).fetchHistory();
  const attempts = events!.map((event) => event.activityTaskStartedEventAttributes?.attempt ?? 0);
  expect(Math.max(...attempts), 'attempts of what was killed').toBeGreaterThan(1);
  expect(result.checkpoint.weights).toBe(leftAlone.checkpoint.weights);
  expect(result.after).toMatchObject({ arms: leftAlone.after!.arms, outcomes: leftAlone.after!.outcomes });
}, 600_000);
