import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ids } from '../../../core/names.ts';
import { killInActivity } from '../../support/kill-workers.ts';
import { killAll, processesBelow } from '../../support/processes-below.ts';
import { until } from '../../support/run-client.ts';
import { startTestInstallation } from '../../support/test-installation.ts';
import type { TestInstallation } from '../../support/test-installation.ts';
import { hardestGoal, tinySpec } from '../../support/tiny-spec.ts';
import { browser } from './available.ts';

const tiny = tinySpec();
const [warmStart, rl] = tiny.stages;
const shared = {
  ...tiny,
  reward: {
    components: [
      { verifier: 'environment', role: 'outcome', weight: 1 },
      { verifier: 'format', role: 'bonus', weight: 0.2 },
      { verifier: 'tool-shaping', role: 'penalty', weight: 0.2 },
    ],
  },
  sampling: { maxTurns: 4, maxCompletionTokens: 40 },
};
const rlIn = (environment: string, maxSteps: number) => ({
  ...rl,
  tasks: [{ environment, levels: [1] }],
  groupsPerStep: 2,
  groupsPerWorkflow: 2,
  numGenerations: 4,
  maxSteps,
  graduation: { successAtLeast: hardestGoal(4, 1), tasks: 4, everySteps: maxSteps },
});
const tasks = [{ environment: 'web-shop', levels: [1] }];
const warm = {
  ...shared,
  model: { ...tiny.model, hiddenSize: 64, intermediateSize: 128, maxPositions: 512 },
  stages: [
    {
      ...warmStart,
      tasks,
      minibatch: 8,
      updatesPerRound: 60,
      maxRounds: 1,
      optimizer: { learningRate: 0.003 },
      graduation: { successAtLeast: 0, tasksPerLevel: 1 },
    },
    rlIn('web-shop', 1),
  ],
  evaluation: { tasks, count: 4 },
};
const inChromium = {
  ...shared,
  model: { from: 'warm' },
  stages: [rlIn('web-shop-browser', 3)],
  evaluation: { tasks, count: 4 },
};

describe.skipIf(!browser.there)(`a run whose pages are in Chromium${browser.leftOut}`, () => {
  let installation: TestInstallation;
  beforeAll(async () => {
    installation = await startTestInstallation({
      processes: [['orchestrator', 'verifier', 'tool'], ['rollout'], ['learner']],
    });
    await (await installation.runs.start('warm', warm)).result();
  }, 900_000);
  afterAll(async () => installation?.remove());

  /** Chromium's first process, with the sandbox around it; pages have processes of their own. */
  const chromium = (): number[] => processesBelow('--remote-debugging-pipe');
  const pages = (): number[] => processesBelow('--type=renderer');

  test('ends with the same weights, though Chromium is killed between two calls, and then the worker', async () => {
    const { runs, workers } = installation;
    const alone = await (await runs.start('alone', inChromium)).result();
    expect(alone.after!.outcomes).toMatchObject({ failed: 0 });
    const handle = await runs.start('killed', inChromium);
    await until(
      async () => (pages().length > 0 ? true : undefined),
      300_000,
      () => 'no page was opened',
    );
    const killed = new Set(chromium());
    killAll(killed);
    await until(
      async () => (chromium().some((pid) => !killed.has(pid)) ? true : undefined),
      180_000,
      () => 'no other Chromium was started',
    );
    await killInActivity(
      { workers, runs },
      (step) => ids.group('killed', 'rl', step, 0),
      'advance',
      'rollout',
    );
    const result = await handle.result();
    expect(result.checkpoint.weights).toBe(alone.checkpoint.weights);
  }, 900_000);
});
