import { afterAll, beforeAll, expect, test } from 'vitest';
import { ids } from '../../../core/names.ts';
import { reweighStep } from '../../../runs/reweigh/reweigh.ts';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import { readSteps } from '../../../store/training/step-facts.ts';
import { DONE } from '../../support/ended.ts';
import { killInActivity } from '../../support/kill-workers.ts';
import { recompute } from '../../support/recompute.ts';
import { startTestInstallation } from '../../support/test-installation.ts';
import type { TestInstallation } from '../../support/test-installation.ts';
import { tinySpecCollecting } from '../../support/tiny-spec.ts';

// A replay buffer: real servers and workers, SIGKILL, and stages that continue as new with groups in the buffer.

let installation: TestInstallation;

const SPEC = tinySpecCollecting({ kind: 'replay', part: 0.25, maxStaleness: 2, priority: 'advantage' });

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

test('with nothing to replay a run ends with the weights of an on-policy one', async () => {
  const plain = await weightsOf('plain', tinySpecCollecting({ kind: 'on-policy' }));
  expect(await weightsOf('none', tinySpecCollecting({ kind: 'replay', part: 0 }))).toBe(plain);
}, 600_000);

test('killed while it replays, a run ends with the same weights, and its steps are weighed again', async () => {
  const { runs, workers, settings } = installation;
  const whole = await weightsOf('whole', SPEC);
  const run = await runs.start('killed', SPEC);
  await killInActivity({ runs, workers }, () => ids.stage('killed', 'rl'), 'scoreTokens', 'learner');
  await killInActivity({ runs, workers }, () => ids.stage('killed', 'rl'), 'trainStep', 'learner');
  const { end, checkpoint } = await run.result();
  expect(end).toEqual(DONE);
  expect(checkpoint.weights).toBe(whole);

  const store = await ObjectStore.connect(settings.store);
  const stepsOf = async (name: string) =>
    (await readSteps(store, name))
      .filter(({ stage }) => stage === 'rl')
      .map((one) => {
        const { circumstances: _, checkpoint: after, ...step } = one;
        return { ...step, weights: after.weights };
      });
  const steps = await stepsOf('killed');
  expect(steps).toEqual(await stepsOf('whole'));
  expect(steps).toHaveLength(6);
  expect(steps.some(({ rollout }) => rollout!.replayed!.groups > 0)).toBe(true);
  for (const { stageStep, rollout } of steps) {
    const { groups } = rollout!.replayed!;
    expect(rollout!.staleness).toBeLessThanOrEqual(2);
    expect(rollout!.episodes).toBe((32 - groups) * SPEC.stages[1].numGenerations);
    const { reproduced } = await reweighStep(
      store,
      { run: 'killed', stage: 'rl', step: stageStep },
      new Map(),
    );
    expect(reproduced.exactly).not.toBe(false);
  }
  store.close();

  const stdout = await recompute(installation.stateDir, 'killed');
  expect(stdout).toContain('all facts and the weights are the same');
}, 600_000);
