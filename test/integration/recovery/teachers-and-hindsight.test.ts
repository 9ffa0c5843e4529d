import { afterAll, beforeAll, expect, test } from 'vitest';
import { ids } from '../../../core/names.ts';
import { findCheckpoints } from '../../../store/training/find-checkpoints.ts';
import { stepsOf } from '../../../runs/overview/steps.ts';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import { loadTrajectories, rolloutKeys } from '../../../store/rollout/trajectories.ts';
import { killAndReplace, killInActivity } from '../../support/kill-workers.ts';
import { startTestInstallation } from '../../support/test-installation.ts';
import type { TestInstallation } from '../../support/test-installation.ts';
import { tinySpec } from '../../support/tiny-spec.ts';

// Stages that learn from corrections with a hint, from stored episodes and from a teacher, one after the other: killed in
// each of them, the run ends with the same bytes as the run that was left alone.

let installation: TestInstallation;
let store: ObjectStore;

const { stages, model, ...tiny } = tinySpec({ maxSteps: 4, groupsPerStep: 16, groupsPerWorkflow: 16 });
const [warmStart, stage] = stages;
const teacher = {
  ...tiny,
  model: { ...model, maxPositions: 512 },
  stages: [warmStart, { ...stage, maxSteps: 2 }],
};
const student = {
  ...tiny,
  model: { from: 'teacher@1' },
  stages: [
    {
      ...stage,
      name: 'corrected',
      algorithm: { kind: 'hindsight', teacher: 'teacher', relabel: true, minibatch: 32 },
    },
    {
      ...stage,
      name: 'offline',
      algorithm: { kind: 'dpo', minibatch: 8 },
      collect: { kind: 'stored', stage: 'corrected' },
    },
    {
      ...stage,
      name: 'distilled',
      algorithm: { kind: 'opd', teachers: [{ from: 'teacher' }], minibatch: 16 },
    },
  ],
};

beforeAll(async () => {
  installation = await startTestInstallation({
    processes: [['orchestrator'], ['verifier', 'tool'], ['rollout'], ['learner']],
  });
  store = await ObjectStore.connect(installation.settings.store);
  await (await installation.runs.start('teacher', teacher)).result();
}, 600_000);

afterAll(async () => {
  store?.close();
  await installation?.remove();
});

test('a run that is killed in a correction, in stored episodes and in a distillation ends with the same weights', async () => {
  const { runs, workers } = installation;
  const leftAlone = await (await runs.start('left-alone', student)).result();
  expect(leftAlone.stages.map(({ name, steps }) => [name, steps])).toEqual([
    ['corrected', 4],
    ['offline', 4],
    ['distilled', 4],
  ]);

  const handle = await runs.start('killed', student);
  const killIn = (at: (step: number) => string, activity: string, role: 'rollout' | 'learner') =>
    killInActivity({ workers, runs }, at, activity, role);
  // The group behind the step's only one asks again what that one failed.
  await killIn((step) => ids.group('killed', 'corrected', step, 1), 'advance', 'rollout');
  await runs.progress(handle, ({ phase, step }) => phase === 'offline' && step?.stage === 'offline');
  await killAndReplace(workers, 'orchestrator');
  await killIn(() => ids.stage('killed', 'distilled'), 'trainStep', 'learner');

  const result = await handle.result();
  expect(result.checkpoint.weights).toBe(leftAlone.checkpoint.weights);
  expect(result.after).toMatchObject({ arms: leftAlone.after!.arms, outcomes: leftAlone.after!.outcomes });

  const { checkpoints } = await findCheckpoints(store, 'killed');
  expect(checkpoints.at(-1)!.ref.step).toBe(12);
  const groupsOf = async (run: string, name: string) => {
    const keys = await rolloutKeys(store, run, name);
    const groups = keys.map(async (key) => loadTrajectories(store, (await store.head(key))!));
    // A call's wall seconds are nobody's to repeat.
    return (await Promise.all(groups)).map(({ tasks, episodes }) => ({
      tasks,
      episodes: episodes.map(({ task, sample, tokens, mask, samplerLogprobs, outcome }) => [
        task,
        sample,
        tokens,
        mask,
        samplerLogprobs,
        outcome,
      ]),
    }));
  };
  // Else nothing is shown: there were corrections, and they were not sampled behind what they are learnt behind.
  const hinted = (await groupsOf('killed', 'corrected'))
    .flatMap(({ tasks }) => tasks)
    .filter(({ learntBehind }) => learntBehind);
  expect(hinted.length).toBeGreaterThan(0);
  // They are counted, and as often after the kills.
  const countsOf = async (run: string) =>
    (await stepsOf(store, run)).steps.flatMap(({ step, rollout }) =>
      rollout?.hinted ? [[step, rollout.hinted]] : [],
    );
  const counts = await countsOf('killed');
  expect(counts).toEqual(await countsOf('left-alone'));
  expect(counts.length).toBeGreaterThan(0);
  for (const { promptTokens, learntBehind } of hinted)
    expect(promptTokens.length).toBeGreaterThan(learntBehind!.length);
  expect(await groupsOf('killed', 'offline')).toEqual(await groupsOf('left-alone', 'offline'));
}, 600_000);
