import { afterAll, beforeAll, expect, test } from 'vitest';
import type { CurriculumResult } from '../../../core/training/curriculum.ts';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import { findCheckpoints } from '../../../store/training/find-checkpoints.ts';
import { readManifest } from '../../../store/training/checkpoints.ts';
import { DONE } from '../../support/ended.ts';
import { resetToBegin } from '../../support/reset.ts';
import { selfPlaySpec } from '../../support/self-play-spec.ts';
import { startTestInstallation } from '../../support/test-installation.ts';
import type { TestInstallation } from '../../support/test-installation.ts';
import { tinySpec, tinySpecCollecting } from '../../support/tiny-spec.ts';

// `temporal workflow reset` of a run that has ended: all that it keeps is there already, of the same steps.

let installation: TestInstallation;
beforeAll(async () => {
  installation = await startTestInstallation();
}, 600_000);
afterAll(() => installation?.remove());

test.each([
  // What a step takes depends on time there, so it is what was taken the first time.
  ['asynchronous', tinySpecCollecting({ kind: 'asynchronous', maxStaleness: 2 })],
  ['self-play', selfPlaySpec({ baseline: 'moving' })],
])(
  'a run with %s that is done again from its beginning ends with the same checkpoint',
  async (run, spec) => {
    const { runs } = installation;
    const handle = await runs.start(run, spec);
    const first = await handle.result();
    expect(first.end).toEqual(DONE);
    await resetToBegin(handle);
    const again = (await runs.client.workflow.getHandle(run).result()) as CurriculumResult;
    expect(again.checkpoint).toEqual(first.checkpoint);
  },
  300_000,
);

test('a run that is done again while it goes on keeps the policies that later stages name', async () => {
  const { runs, settings } = installation;
  const { stages, ...tiny } = tinySpec({ maxSteps: 2, groupsPerStep: 4, groupsPerWorkflow: 4 });
  const [warmStart, rl] = stages;
  const spec = {
    ...tiny,
    stages: [
      warmStart,
      { ...rl, name: 'first' },
      { ...rl, name: 'second', from: { stage: 'warm-start' } },
      { ...rl, name: 'third', from: { stage: 'first' }, maxSteps: 1 },
    ],
    retention: { keepLast: 1, keepBest: 0 },
  };
  const whole = await (await runs.start('left-alone', spec)).result();
  const store = await ObjectStore.connect(settings.store);
  // The third stage has one step, from what the first one ended with.
  const { parent } = await readManifest(store, whole.checkpoint.manifest);
  const handle = await runs.start('done-again', spec);
  await runs.progress(handle, ({ step }) => step?.stage === 'second' && step.stageStep >= 1, 120_000);
  await resetToBegin(handle);
  const again = runs.client.workflow.getHandle('done-again');
  await runs.progress(again, ({ step }) => step?.stage === 'second', 120_000);
  const left = (await findCheckpoints(store, 'done-again')).checkpoints.map(({ ref }) => ref.weights);
  expect(left).toContain(parent!.weights);
  store.close();
  const result = (await again.result()) as CurriculumResult;
  expect(result.end).toEqual(DONE);
  expect(result.checkpoint.weights).toBe(whole.checkpoint.weights);
}, 600_000);
