import { afterAll, beforeAll, expect, test } from 'vitest';
import { ids } from '../../../core/names.ts';
import type { StepFacts } from '../../../core/training/step-facts.ts';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import { readSteps } from '../../../store/training/step-facts.ts';
import { DONE } from '../../support/ended.ts';
import { fromFailuresSpec } from '../../support/from-failures-spec.ts';
import { killAndReplace, killInActivity } from '../../support/kill-workers.ts';
import { startTestInstallation } from '../../support/test-installation.ts';
import type { TestInstallation } from '../../support/test-installation.ts';

// Tasks made of what an earlier stage failed: real servers and workers, SIGKILL, and a stage that continues as new with them.

let installation: TestInstallation;
const SPEC = fromFailuresSpec({ maxSteps: 6 });

beforeAll(async () => {
  installation = await startTestInstallation({
    dynamicConfig: { 'limit.historyCount.suggestContinueAsNew': 60 },
  });
}, 600_000);

afterAll(() => installation?.remove());

test('killed while it varies, filters and learns, a run ends with the same tasks and weights', async () => {
  const { runs, workers, settings } = installation;
  const whole = await (await runs.start('whole', SPEC)).result();
  expect(whole.end).toEqual(DONE);

  const run = await runs.start('killed', SPEC);
  const stage = (): string => ids.stage('killed', 'phase-2');
  const group = (step: number): string => ids.group('killed', 'phase-2', step, 0);
  await killInActivity({ runs, workers }, stage, 'varyFailures', 'orchestrator');
  await killInActivity({ runs, workers }, stage, 'scoreTokens', 'learner');
  await killInActivity({ runs, workers }, group, 'advance', 'rollout');
  await killAndReplace(workers, 'orchestrator', 'rollout', 'verifier');
  const killed = await run.result();
  expect(killed.end).toEqual(DONE);
  expect(killed.checkpoint.weights).toBe(whole.checkpoint.weights);

  const store = await ObjectStore.connect(settings.store);
  const stepsOf = async (name: string) =>
    (await readSteps(store, name))
      .filter(({ stage: of }) => of === 'phase-2')
      .map(({ checkpoint, ...step }: StepFacts) => ({
        ...step,
        circumstances: null,
        weights: checkpoint.weights,
      }));
  const steps = await stepsOf('killed');
  expect(steps).toEqual(await stepsOf('whole'));
  expect(steps).toHaveLength(6);

  const facts = steps[0]!.rollout!.fromFailures!;
  expect(facts.kept).toBeGreaterThan(0);
  expect(new Set(steps.map(({ rollout }) => rollout!.fromFailures!.source)).size).toBe(1);
  const objects = async (name: string, folder: string): Promise<string[]> =>
    (await store.list(`runs/${name}/${folder}/`)).map(({ key }) => key.split('/').at(-1)!);
  expect(await objects('killed', 'tasks')).toEqual([`${facts.source}.json`]);
  expect(await objects('whole', 'tasks')).toEqual([`${facts.source}.json`]);
  expect(await objects('killed', 'variations')).toEqual(await objects('whole', 'variations'));
  store.close();
}, 600_000);
