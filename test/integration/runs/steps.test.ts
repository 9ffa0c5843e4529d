import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { keepMadeRun } from '../../support/keep-made-run.ts';
import { MADE_STAGE } from '../../support/made-run.ts';
import type { CurriculumSpec } from '../../../core/schema/curriculum-spec.ts';
import type { StepFacts } from '../../../core/training/step-facts.ts';
import { FactCache } from '../../../runs/find/fact-cache.ts';
import { lastStep } from '../../../runs/overview/last-step.ts';
import { stepsOf } from '../../../runs/overview/steps.ts';
import { runPrefix, stepFactsKey } from '../../../store/keys.ts';
import { putStepAnswer, putStepFacts, readSteps } from '../../../store/training/step-facts.ts';
import { someHeldOut, someStep } from '../../support/some-step.ts';
import { openTestStore } from '../../support/test-store.ts';

const { server, store } = await openTestStore();
const SIZE = { steps: 30, groups: 1, samples: 2 };
let folder: string;
let cache: FactCache;

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'gradus-steps-'));
  cache = new FactCache(folder);
  await keepMadeRun(store, 'made', SIZE);
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const files = async (): Promise<string[]> =>
  (await readdir(folder, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name));

test('what was read once is not read again; what is new is, and so are answers', async () => {
  const first = await stepsOf(store, 'made', { cache });
  expect(first).toEqual({ steps: await readSteps(store, 'made'), unreadable: [] });
  expect(first.steps).toHaveLength(30);
  expect(await files()).toHaveLength(1);

  // An object that nobody reads may as well be damaged.
  await writeFile(server.fileOf(stepFactsKey('made', MADE_STAGE, 3)), '{}');
  await keepMadeRun(store, 'made', { ...SIZE, steps: 32 }, { from: 31 });
  await putStepAnswer(store, 'made', { stage: MADE_STAGE, stageStep: 30, answer: 'advance' });
  const { steps, unreadable } = await stepsOf(store, 'made', { cache });
  expect(unreadable).toEqual([]);
  expect(steps.slice(0, 29)).toEqual(first.steps.slice(0, 29));
  expect(steps.map(({ step, answer }) => [step, answer]).slice(28)).toEqual([
    [29, null],
    [30, 'advance'],
    [31, null],
    [32, null],
  ]);
});

test('facts that are damaged are named, and the others are there', async () => {
  const { steps, unreadable } = await stepsOf(store, 'made', {
    cache: new FactCache(path.join(folder, 'other')),
  });
  expect(steps).toHaveLength(31);
  expect(unreadable).toEqual([
    {
      key: stepFactsKey('made', MADE_STAGE, 3),
      message: expect.stringContaining('it was damaged or replaced'),
    },
  ]);
});

test('a damaged file of the cache is made anew', async () => {
  await keepMadeRun(store, 'whole', { ...SIZE, steps: 20 });
  const before = new Set(await files());
  const read = await stepsOf(store, 'whole', { cache });
  const made = (await files()).filter((file) => !before.has(file));
  expect(made).toHaveLength(1);
  await writeFile(made[0]!, 'of a disk that lies');
  expect(await stepsOf(store, 'whole', { cache })).toEqual(read);
  expect((await stepsOf(store, 'whole', { cache })).steps).toHaveLength(20);
});

test('a run that was deleted and made anew under its name is another one', async () => {
  await keepMadeRun(store, 'again', { ...SIZE, steps: 20 });
  await stepsOf(store, 'again', { cache });
  await store.remove((await store.list(runPrefix('again'))).map(({ key }) => key));
  expect(await stepsOf(store, 'again', { cache })).toEqual({ steps: [], unreadable: [] });
  await keepMadeRun(store, 'again', { ...SIZE, steps: 18, groups: 2 }, { execution: 'another' });
  const { steps } = await stepsOf(store, 'again', { cache });
  expect(steps.map(({ rollout }) => rollout!.episodes)).toEqual(Array.from({ length: 18 }, () => 4));
});

test('a run is at its last step, and what it was measured by last may be of the stage before', async () => {
  const measured = someHeldOut(3, 4);
  const stages = ['one', 'two'].map((name) => ({ name, kind: 'rl', graduation: { everySteps: 5 } }));
  const spec = { stages } as unknown as CurriculumSpec;
  const keep = (stage: string, stageStep: number, heldOut: StepFacts['heldOut']) =>
    putStepFacts(store, 'two-stages', someStep({ stage, stageStep, heldOut }));
  await keep('one', 5, measured);
  await keep('one', 7, null);
  await keep('two', 2, null);
  expect(await lastStep(store, 'two-stages', spec)).toMatchObject({
    step: { stage: 'two', stageStep: 2 },
    heldOut: measured,
  });
  await keep('two', 5, { ...measured, meanReward: 0.125 });
  expect((await lastStep(store, 'two-stages', spec))!.heldOut!.meanReward).toBe(0.125);
});
