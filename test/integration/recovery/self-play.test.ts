import { afterAll, beforeAll, expect, test } from 'vitest';
import { ids } from '../../../core/names.ts';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import { DONE } from '../../support/ended.ts';
import { killAndReplace, killInActivity } from '../../support/kill-workers.ts';
import { playedSteps } from '../../support/self-play-steps.ts';
import { selfPlaySpec } from '../../support/self-play-spec.ts';
import { startTestInstallation } from '../../support/test-installation.ts';
import type { TestInstallation } from '../../support/test-installation.ts';

// A proposer and a solver: real servers and workers, SIGKILL, and a stage that continues as new with the tasks it has made.

let installation: TestInstallation;
// Its moving means are carried from step to step, too.
const SPEC = selfPlaySpec({ maxSteps: 6, baseline: 'moving' });

beforeAll(async () => {
  installation = await startTestInstallation({
    dynamicConfig: { 'limit.historyCount.suggestContinueAsNew': 60 },
  });
}, 600_000);

afterAll(() => installation?.remove());

test('killed while it proposes, checks, solves and learns, a run ends with the same tasks and weights', async () => {
  const { runs, workers, settings } = installation;
  const whole = await (await runs.start('whole', SPEC)).result();
  expect(whole.end).toEqual(DONE);

  const run = await runs.start('killed', SPEC);
  const group = (step: number): string => ids.group('killed', 'play', step, 0);
  const stage = (): string => ids.stage('killed', 'play');
  await killInActivity({ runs, workers }, group, 'advance', 'rollout');
  await killInActivity({ runs, workers }, stage, 'trainStep', 'learner');
  await killAndReplace(workers, 'orchestrator', 'rollout', 'verifier');
  const killed = await run.result();
  expect(killed.end).toEqual(DONE);
  expect(killed.checkpoint.weights).toBe(whole.checkpoint.weights);

  const store = await ObjectStore.connect(settings.store);
  const steps = await playedSteps(store, 'killed');
  expect(steps).toEqual(await playedSteps(store, 'whole'));
  expect(steps).toHaveLength(6);
  const sources = steps.map(({ rollout }) => rollout!.selfPlay!.source);
  expect(new Set(sources).size).toBeGreaterThan(2);
  const means = steps.map(({ movingMeans = {} }) => Object.keys(movingMeans).length);
  expect(means[0]).toBe(0);
  expect(means.slice(1).every((arms) => arms > 0)).toBe(true);
  const names = async (name: string): Promise<string[]> =>
    (await store.list(`runs/${name}/tasks/`)).map(({ key }) => key.split('/').at(-1)!);
  expect(await names('killed')).toEqual(await names('whole'));
  store.close();
}, 600_000);
