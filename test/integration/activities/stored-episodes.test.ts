import { expect, test } from 'vitest';
import { createCurriculum } from '../../../activities/training/curriculum.ts';
import type { StoredRequest } from '../../../core/requests/batch.ts';
import { newModelFiles } from '../../../engine/new-model-files.ts';
import { calculatorEnvironment } from '../../../environments/families/calculator/environment.ts';
import { inThisProcess } from '../../../environments/host/hosted-environment.ts';
import { saveCheckpoint } from '../../../store/training/checkpoints.ts';
import { doneRolloutKeys } from '../../../store/training/done-rollouts.ts';
import { putStepAnswer, putStepFacts } from '../../../store/training/step-facts.ts';
import { takeGroups } from '../../../store/training/taken-groups.ts';
import { putTrajectories, loadTrajectories } from '../../../store/rollout/trajectories.ts';
import { tokenizerJson } from '../../support/fixture-tokenizer.ts';
import { answered } from '../../support/ladder-groups.ts';
import { someStep } from '../../support/some-step.ts';
import { openTestStore } from '../../support/test-store.ts';
import { tinySpec } from '../../support/tiny-spec.ts';
import { checkpointAt, smallConfig } from '../../support/store/fixtures.ts';

const { store } = await openTestStore();
const signal = new AbortController().signal;
const curriculum = createCurriculum({ store, environments: inThisProcess([calculatorEnvironment()]) });

const saved = (run: string, json = tokenizerJson) => {
  const config = { ...smallConfig, vocabSize: 512 };
  return saveCheckpoint(store, { ...checkpointAt(1, config, run), files: newModelFiles(config, json) });
};
const reward: StoredRequest['reward'] = {
  components: [{ verifier: 'exact-match', role: 'outcome', weight: 1, gatedBy: null }],
  truncated: 'train',
};

/** Two samples of each of two tasks; the second task was learnt from before, and drawn again. */
const begin = (run: string, step: number, id = 'group-0000') => {
  const outcome = (score: number) => ({
    kind: 'scored' as const,
    reward: score,
    components: [{ verifier: 'exact-match', version: '1', score, contribution: score }],
  });
  const [first, second] = [answered('1', 0, 7), answered('2', 1, 8)];
  const group = {
    id,
    weights: `weights-${step}`,
    temperature: 1,
    tasks: [1, 2].map((level) => ({
      ref: { environment: 'calculator', split: 'train' as const, level, index: step },
      prompt: '',
      promptTokens: [0],
      ...(level === 2 && { retried: true as const }),
    })),
    episodes: [0, 1].flatMap((task) => [
      { ...first, task, outcome: outcome(1), learntAs: outcome(0) },
      { ...second, task, outcome: outcome(0) },
    ]),
  };
  return putTrajectories(store, { run, stage: 'rl', step }, group);
};

const done = (run: string, stageStep: number) => putStepFacts(store, run, someStep({ stageStep }));
/** Of a step that is done. */
const keep = async (run: string, step: number, id?: string) => {
  const kept = await begin(run, step, id);
  await done(run, step);
  return kept;
};

const request = async (run: string, over: Partial<StoredRequest> = {}): Promise<StoredRequest> => ({
  run,
  seed: 1,
  stage: 'offline',
  step: 1,
  from: { run, stage: 'rl' },
  arms: [1, 2].map((level) => ({ environment: 'calculator', level })),
  count: 2,
  reward,
  checkpoint: await saved(run),
  ...over,
});

const tasksOf = async ({ groups }: Awaited<ReturnType<typeof curriculum.collectStored>>) => {
  const loaded = await Promise.all(groups.map((group) => loadTrajectories(store, group)));
  return loaded.flatMap(({ weights, tasks, episodes }) =>
    tasks.map(({ ref, ...rest }, place) => ({
      weights,
      task: `${ref.level}/${ref.index}`,
      rest,
      episodes: episodes.filter(({ task }) => task === place),
    })),
  );
};

test('a step takes whole tasks, as they were sampled and judged, and counts them as its own', async () => {
  for (const step of [1, 2, 3]) await keep('whole', step);
  await keep('whole', 1, 'group-0000.late-rl-2');
  const asked = await request('whole', { count: 6 });
  const taken = await curriculum.collectStored(asked, signal);
  expect(taken.groups).toHaveLength(3);
  expect(taken).toMatchObject({ outcomes: { scored: 12 }, rewardSum: 6, rewardCount: 12, sampledTokens: 0 });
  const tasks = await tasksOf(taken);
  expect(tasks.map(({ task }) => task).toSorted()).toEqual(['1/1', '1/2', '1/3', '2/1', '2/2', '2/3']);
  for (const { weights, task, rest, episodes } of tasks) {
    expect(weights).toBe(`weights-${task.at(-1)}`);
    expect(rest).toEqual({ prompt: '', promptTokens: [0] });
    expect(episodes).toMatchObject([{ tokens: [7] }, { tokens: [8] }]);
    expect(episodes[0]).not.toHaveProperty('learntAs');
  }
});

test('of many groups their names pass through the control plane, and one count of all', async () => {
  for (let step = 1; step <= 40; step++) await keep('wide', step);
  const taken = await curriculum.collectStored(await request('wide', { count: 80 }), signal);
  expect(taken).toMatchObject({ rewardCount: 160, behaviour: { episodes: 160 } });
  expect(taken.groups).toHaveLength(40);
  expect(JSON.stringify(taken).length).toBeLessThan(40 * 300);
});

test('what there is to draw from is written down at the first step: later episodes change nothing', async () => {
  for (const step of [1, 2, 3]) await keep('frozen', step);
  const asked = await request('frozen');
  const first = await curriculum.collectStored(asked, signal);
  await keep('frozen', 4);
  expect((await curriculum.collectStored(asked, signal)).groups).toEqual(first.groups);
  const all = await Promise.all(
    [1, 2, 3].map(async (step) => tasksOf(await curriculum.collectStored({ ...asked, step }, signal))),
  );
  expect(new Set(all.flat().map(({ task }) => task)).size).toBe(6);
});

test('tasks of other levels, and other steps, are left out', async () => {
  for (const step of [1, 2, 3, 4]) await keep('chosen', step);
  const from = { run: 'chosen', stage: 'rl', steps: { from: 2, to: 3 } };
  const arms = [{ environment: 'calculator', level: 2 }];
  const asked = await request('chosen', { from, arms, count: 10 });
  const tasks = await tasksOf(await curriculum.collectStored(asked, signal));
  expect(tasks.map(({ task }) => task).toSorted()).toEqual(['2/2', '2/3']);
  const none = { ...asked, stage: 'none', arms: [{ environment: 'calculator', level: 3 }] };
  await expect(curriculum.collectStored(none, signal)).rejects.toMatchObject({ type: 'no-rollouts' });
});

test('what a stage that collects ahead leaves of a step that it did not do is no episode to learn from', async () => {
  for (const step of [1, 2]) await keep('ahead', step);
  // An answer to the question of a step is no step.
  await putStepAnswer(store, 'ahead', { stage: 'rl', stageStep: 3, answer: 'stop' });
  const asked = await request('ahead', { count: 10 });
  const plain = await tasksOf(await curriculum.collectStored(asked, signal));
  expect(plain.map(({ task }) => task).toSorted()).toEqual(['1/1', '1/2', '2/1', '2/2']);
  // Another course of the same stage has had the time to begin another step.
  await begin('ahead', 3);
  const later = { ...asked, stage: 'later' };
  expect(await tasksOf(await curriculum.collectStored(later, signal))).toHaveLength(4);
});

test('of an asynchronous stage it is the groups that its steps have taken', async () => {
  const run = 'asynchronous';
  for (const step of [1, 2, 3, 4]) await begin(run, step);
  const group = { group: 0, firstTask: 0, tasks: [], retries: 0, again: [], begunAfter: 0 };
  const take = (step: number, ...steps: number[]) =>
    takeGroups(store, {
      run,
      stage: 'rl',
      step,
      wanted: { groups: steps.map((of) => ({ ...group, step: of })) },
    });
  await Promise.all([take(1, 1, 3), take(2, 4), done(run, 1)]);
  const tasks = await tasksOf(await curriculum.collectStored(await request(run, { count: 10 }), signal));
  expect(tasks.map(({ task }) => task).toSorted()).toEqual(['1/1', '1/3', '2/1', '2/3']);
});

test('a stage that was stopped in its first step has left none, whatever it had the time for', async () => {
  const run = 'first-step';
  for (const step of [1, 2]) await begin(run, step);
  await expect(curriculum.collectStored(await request(run, { count: 10 }), signal)).rejects.toThrow();
  expect(await doneRolloutKeys(store, run, 'rl')).toEqual([]);
});

test('episodes of another run are taken where they are of the same tokens', async () => {
  await keep('source', 1);
  await saved('source');
  const same = await request('same', { from: { run: 'source', stage: 'rl' } });
  expect(await tasksOf(await curriculum.collectStored(same, signal))).toHaveLength(2);
  const checkpoint = await saved('different', tokenizerJson.replace('"version"', '"version" '));
  const different = { ...same, run: 'different', checkpoint };
  await expect(curriculum.collectStored(different, signal)).rejects.toMatchObject({
    boundary: 'spec',
    message: expect.stringContaining('the episodes of source are of another tokenizer') as string,
  });
});

test('episodes of another run that were judged by another reward, or cut less, are refused when the run is opened', async () => {
  const { model: _, ...tiny } = tinySpec();
  await saved('begun');
  const spec = { ...tiny, model: { from: 'begun' } };
  const open = (workflowId: string, written: object) =>
    curriculum.openRun({ spec: written, workflowId, firstExecutionRunId: workflowId }, signal);
  await open('judged', spec);
  await saved('judged');
  await keep('judged', 1);
  const offline = {
    ...tiny.stages[1],
    algorithm: { kind: 'rft' },
    collect: { kind: 'stored', run: 'judged', stage: 'rl' },
  };
  const learns = { ...spec, stages: [offline] };
  await expect(open('like', learns)).resolves.toMatchObject({ run: 'like' });
  const [first, ...others] = tiny.reward.components;
  await expect(
    open('unlike', { ...learns, reward: { components: [{ ...first, weight: 2 }, ...others] } }),
  ).rejects.toMatchObject({
    type: 'invalid',
    message: expect.stringContaining('rl learns from episodes of judged') as string,
  });
  await open('cut', { ...spec, sampling: { ...tiny.sampling, topK: 8 } });
  await saved('cut');
  await keep('cut', 1);
  const fromCut = { ...offline, collect: { ...offline.collect, run: 'cut' } };
  const among = (topK: number) => ({ ...spec, sampling: { ...tiny.sampling, topK }, stages: [fromCut] });
  await expect(open('as-many', among(8))).resolves.toMatchObject({ run: 'as-many' });
  await expect(open('fewer', among(4))).rejects.toMatchObject({
    type: 'invalid',
    message: expect.stringContaining(
      'rl learns from episodes of cut, which were sampled among 8 tokens: raise sampling.topK to that, or set it to 0',
    ) as string,
  });
  const gone = { ...learns, stages: [{ ...offline, collect: { ...offline.collect, stage: 'r1' } }] };
  await expect(open('gone', gone)).rejects.toMatchObject({ type: 'no-stage' });
});

test('episodes of another run that are not there, or of other tokens, are refused before anything is spent', async () => {
  const { model: shape, ...tiny } = tinySpec();
  const open = (workflowId: string, written: object) =>
    curriculum.openRun({ spec: written, workflowId, firstExecutionRunId: workflowId }, signal);
  await saved('beginning');
  await open('rolled-out', { ...tiny, model: { from: 'beginning' } });
  await saved('rolled-out');
  const offline = (collect: object, over: object = {}) => ({
    ...tiny.stages[1],
    ...over,
    algorithm: { kind: 'rft' },
    collect: { kind: 'stored', run: 'rolled-out', stage: 'rl', ...collect },
  });
  const learns = (stage: object, from = 'beginning') => ({ ...tiny, model: { from }, stages: [stage] });
  await keep('rolled-out', 3);
  await expect(open('there', learns(offline({})))).resolves.toMatchObject({ run: 'there' });
  const none = { type: 'no-rollouts', message: expect.stringContaining('stage rl of rolled-out') as string };
  await expect(open('later', learns(offline({ steps: { from: 4 } })))).rejects.toMatchObject(none);
  const harder = offline({}, { tasks: [{ environment: 'calculator', levels: [3] }] });
  await expect(open('harder', learns(harder))).rejects.toMatchObject(none);
  const others = {
    boundary: 'spec',
    message: expect.stringContaining('the episodes of rolled-out are of another tokenizer') as string,
  };
  await saved('other-tokens', tokenizerJson.replace('"version"', '"version" '));
  await expect(open('unlike-it', learns(offline({}), 'other-tokens'))).rejects.toMatchObject(others);
  // What a new model's tokens are is known when its tokenizer is learnt, which is before its first stage.
  const scratch = { ...tiny, model: shape, stages: [tiny.stages[0], offline({})] };
  const { run, seed, model } = await open('scratch', scratch);
  const arms = [{ environment: 'calculator', level: 1 }];
  await expect(
    curriculum.initializeModel(
      { run, seed, model, arms, maxCompletionTokens: 16, episodesOf: ['rolled-out'] },
      signal,
    ),
  ).rejects.toMatchObject(others);
});

test('a run that is to be followed and is not there is refused before anything is spent', async () => {
  const tiny = tinySpec();
  const following = (follow: string) => ({
    ...tiny,
    stages: [
      tiny.stages[0],
      {
        ...tiny.stages[1],
        algorithm: { kind: 'grpo', importanceCap: 2 },
        collect: { kind: 'asynchronous', follow },
      },
    ],
  });
  const open = (workflowId: string, follow: string) =>
    curriculum.openRun({ spec: following(follow), workflowId, firstExecutionRunId: workflowId }, signal);
  await keep('followed', 1);
  await expect(open('follows', 'followed')).resolves.toMatchObject({ run: 'follows' });
  await expect(open('strays', 'folowed')).rejects.toMatchObject({
    type: 'no-run',
    message: expect.stringContaining('"followed"') as string,
  });
  // Nor is there one that it could be itself.
  await expect(open('itself', 'itself')).rejects.toMatchObject({ type: 'no-run' });
});
