import { expect, test } from 'vitest';
import { createCurriculum } from '../../../activities/training/curriculum.ts';
import type { ModelConfig } from '../../../core/model/config.ts';
import { newModelFiles } from '../../../engine/new-model-files.ts';
import { calculatorEnvironment } from '../../../environments/families/calculator/environment.ts';
import { inThisProcess } from '../../../environments/host/hosted-environment.ts';
import { saveCheckpoint } from '../../../store/training/checkpoints.ts';
import { findCheckpoints } from '../../../store/training/find-checkpoints.ts';
import { tokenizerJson } from '../../support/fixture-tokenizer.ts';
import { openTestStore } from '../../support/test-store.ts';
import { tinySpec } from '../../support/tiny-spec.ts';
import { checkpointAt, smallConfig } from '../../support/store/fixtures.ts';

const { store } = await openTestStore();
const signal = new AbortController().signal;
const curriculum = createCurriculum({ store, environments: inThisProcess([calculatorEnvironment()]) });

const vocabSize = 512;
const saved = (
  run: string,
  step: number,
  {
    json = tokenizerJson,
    speaks = {},
    ...over
  }: { json?: string; speaks?: object } & Partial<ModelConfig> = {},
) => {
  const config = { ...smallConfig, vocabSize, ...over };
  return saveCheckpoint(store, {
    ...checkpointAt(step, config, run),
    files: new Map([
      ...newModelFiles(config, json),
      ['tokenizer_config.json', new TextEncoder().encode(JSON.stringify(speaks))],
    ]),
  });
};
const { model: _, ...tiny } = tinySpec();
const specWith = (teachers: object[]) => ({
  ...tiny,
  model: { from: 'student' },
  stages: tiny.stages.map((stage) =>
    'groupsPerStep' in stage ? { ...stage, algorithm: { kind: 'opd', teachers } } : stage,
  ),
});
const open = (workflowId: string, teachers: object[]) =>
  curriculum.openRun({ spec: specWith(teachers), workflowId, firstExecutionRunId: workflowId }, signal);
const initialize = async (run: string, teacher: string, speaking: string[] = []) => {
  const { model, checkpoints } = await open(run, [{ from: teacher }]);
  const sizes = { seed: 1, arms: [], maxCompletionTokens: 40 };
  return curriculum.initializeModel(
    { ...sizes, run, model, ...(checkpoints && { checkpoints }), speaking },
    signal,
  );
};

await saved('student', 0);

test('a teacher is the checkpoint that the run was opened with, and stays when its own run goes on', async () => {
  const first = await saved('teacher', 1);
  const teachers = [{ from: 'teacher' }, { from: 'teacher@1' }];
  const { checkpoints } = await open('opened', teachers);
  expect(checkpoints).toEqual({ teacher: first, 'teacher@1': first });
  await saved('teacher', 2);
  expect((await open('opened', teachers)).checkpoints).toEqual({ teacher: first, 'teacher@1': first });

  await saved('teacher', 3);
  const retention = { keepLast: 1, keepBest: 0, keepEvery: 0 };
  await curriculum.applyRetention({ run: 'teacher', retention, pinned: [], scores: [] }, signal);
  const { checkpoints: left } = await findCheckpoints(store, 'teacher');
  expect(left.map(({ ref }) => ref.step)).toEqual([1, 3]);
});

test('what a run that is done again has not come to yet stays', async () => {
  const [first, second, ended] = [await saved('again', 1), await saved('again', 2), await saved('again', 3)];
  // It ended with the second, which a later stage names, and has gone on; now its first step is done again.
  const retention = { keepLast: 1, keepBest: 0, keepEvery: 0 };
  await curriculum.applyRetention({ run: 'again', retention, pinned: [first], scores: [] }, signal);
  const stepsLeft = async () =>
    (await findCheckpoints(store, 'again')).checkpoints.map(({ ref }) => ref.step);
  expect(await stepsLeft()).toEqual([1, 2, 3]);
  await curriculum.applyRetention({ run: 'again', retention, pinned: [second, ended], scores: [] }, signal);
  expect(await stepsLeft()).toEqual([2, 3]);
});

test('one that is not there is refused when the run is opened', async () => {
  await expect(open('unknown', [{ from: 'nobody' }])).rejects.toMatchObject({
    type: 'no-checkpoint',
    retryable: false,
    message: expect.stringMatching(/"nobody".*"npm run gradus -- import"/) as string,
  });
});

test('one with the same tokens may be of another shape', async () => {
  await saved('larger', 1, { hiddenSize: 64, layers: 3 });
  expect(await initialize('taught', 'larger')).toMatchObject({ step: 0 });
});

test.each<[string, Parameters<typeof saved>[2], string]>([
  ['more tokens', { vocabSize: 640 }, "its vocabulary has 640 tokens, and the model's 512"],
  ['other tokens', { json: tokenizerJson.replace('"version"', '"version" ') }, 'its tokenizer.json differs'],
  ['less room', { maxPositions: 64 }, 'it holds 64 positions, and the model 128'],
])('one with %s is refused before the run has a checkpoint', async (how, over, message) => {
  const name = how.replace(' ', '-');
  await saved(name, 1, over);
  await expect(initialize(`taught-by-${name}`, name)).rejects.toMatchObject({
    boundary: 'spec',
    type: 'invalid',
    retryable: false,
    message: expect.stringContaining(message) as string,
  });
  expect((await findCheckpoints(store, `taught-by-${name}`)).checkpoints).toEqual([]);
});

test('one that samples in place of the model must write as it does; one that only compares need not', async () => {
  await saved('otherwise', 1, { speaks: { chat_template: 'other' } });
  expect(await initialize('compared', 'otherwise')).toMatchObject({ step: 0 });
  await expect(initialize('corrected', 'otherwise', ['otherwise'])).rejects.toMatchObject({
    boundary: 'spec',
    message: expect.stringContaining('its tokenizer_config.json differs') as string,
  });
  await saved('alike', 1);
  expect(await initialize('corrected', 'alike', ['alike'])).toMatchObject({ step: 0 });
});
