import { WorkflowExecutionAlreadyStartedError, WorkflowUpdateFailedError } from '@temporalio/client';
import type { WorkflowHandle } from '@temporalio/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { loadCheckpoint } from '../../../store/training/checkpoints.ts';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import { ids } from '../../../core/names.ts';
import type { CurriculumResult } from '../../../core/training/curriculum.ts';
import { decide, decided, pause, resume, stop } from '../../../workflows/control/messages.ts';
import { briefSpec } from '../../support/brief-spec.ts';
import { until, untilBegun } from '../../support/run-client.ts';
import type { RunClient } from '../../support/run-client.ts';
import { startTestInstallation } from '../../support/test-installation.ts';
import type { TestInstallation } from '../../support/test-installation.ts';

let installation: TestInstallation;
let store: ObjectStore;
let runs: RunClient;

beforeAll(async () => {
  installation = await startTestInstallation();
  ({ runs } = installation);
  store = await ObjectStore.connect(installation.settings.store);
});

afterAll(async () => {
  store?.close();
  await installation?.remove();
});

const withSeed = (seed: number) => ({ ...briefSpec(), seed });

/** Resolves to the runs that the Temporal server lists, once there is one. */
const listed = (query: string): Promise<string[]> =>
  until(
    async () => {
      const found: string[] = [];
      for await (const { workflowId } of runs.client.workflow.list({ query })) found.push(workflowId);
      return found.length > 0 ? found : undefined;
    },
    300_000,
    () => `nothing is listed for ${query}`,
  );
const listedAs = (status: string): Promise<string[]> => listed(`GradusStatus = '${status}'`);

/** A stage that measures itself at each step, and asks after two, whatever they say. */
function askingSpec() {
  const spec = briefSpec({ maxSteps: 1000 });
  const [warmStart, stage] = spec.stages;
  return {
    ...spec,
    stages: [
      warmStart,
      {
        ...stage,
        // Shown by eight of eight only, in so many looks.
        graduation: { ...stage.graduation, successAtLeast: 0.3, everySteps: 1 },
        plateau: { evaluations: 2, minImprovement: 1, confidence: 0.5, action: 'ask' },
        collapse: { successBelowBest: 0 },
      },
    ],
  };
}

const refusal = (decided: Promise<unknown>): Promise<string> =>
  decided.then(
    (answer) => `taken: ${String(answer)}`,
    (error: unknown) => {
      if (!(error instanceof WorkflowUpdateFailedError)) throw error;
      return error.cause?.message ?? '';
    },
  );

const answer = (handle: WorkflowHandle, decision: unknown): Promise<unknown> =>
  handle.executeUpdate<unknown, [unknown]>(decide.name, { args: [decision] });

test('a run is paused, resumed, asked, answered and stopped; what makes no sense is refused', async () => {
  const handle = await runs.start('asking', askingSpec());
  expect(await refusal(answer(handle, 'continue'))).toBe('the run waits for no decision');
  await expect(runs.start('asking', askingSpec())).rejects.toThrow(WorkflowExecutionAlreadyStartedError);

  expect(await listedAs('running')).toEqual(['asking']);
  // In its first step: it asks after two.
  await untilBegun(runs, ids.group('asking', 'rl', 1, 0));
  await handle.signal(pause);
  await runs.progress(handle, ({ status }) => status === 'paused');
  // An answer that is left over, as from someone who decided twice, is none to the question that comes next.
  await runs.client.workflow.getHandle('asking/rl').signal(decided, { question: 'earlier', answer: 'stop' });
  expect(await listedAs('paused')).toEqual(['asking']);
  const events = await runs.settled('asking/rl');
  const paused = await runs.progress(handle, ({ status }) => status === 'paused');
  // Another run comes to its end in the meantime: time enough for a step, if one were taken.
  await (await runs.start('meanwhile', withSeed(1))).result();
  expect(await runs.settled('asking/rl')).toBe(events);
  expect(await handle.query('progress')).toEqual(paused);

  await handle.signal(resume);
  const waiting = await runs.progress(handle, ({ status }) => status === 'waiting');
  expect(await listedAs('waiting')).toEqual(['asking']);
  expect(waiting.question!.reason).toMatch(/gained less than 100\.0 %/);
  expect(waiting.step!.note).toContain(waiting.question!.reason);
  const [first] = waiting.question!.answers;
  expect(first).toMatchObject({
    answer: 'continue',
    effect: expect.stringMatching(/^train on from the newest/),
  });
  for (const wrong of ['sideways', 'more-rounds', null, { answer: 'continue' }]) {
    expect(await refusal(answer(handle, wrong))).toBe(
      `${JSON.stringify(wrong)} is no answer to this question; choose one of` +
        waiting.question!.answers.map((one) => `\n  "${one.answer}": ${one.effect}`).join(''),
    );
  }
  // An answer that nobody could have chosen reaches the stage past the curriculum.
  const stage = runs.client.workflow.getHandle('asking/rl');
  await stage.signal(decided, { question: waiting.question!.id, answer: 'more-rounds' });
  await stage.signal('decided', 'stop');
  expect(await answer(handle, 'continue')).toBe('continue');
  const again = await runs.progress(
    handle,
    ({ status, step }) => status === 'waiting' && step!.stageStep > waiting.step!.stageStep,
  );
  // Who is late by one question answers none.
  const late = handle.executeUpdate<unknown, [unknown, unknown]>(decide.name, {
    args: ['stop', waiting.question!.id],
  });
  expect(await refusal(late)).toContain(`which is "${again.question!.id}": ${again.question!.reason}`);
  // Back to the best one, which is the first: it is trained from once more, under a step of its own.
  const named = handle.executeUpdate(decide, { args: ['rollback', again.question!.id] });
  expect(await named).toBe('rollback');
  await runs.progress(
    handle,
    ({ status, step }) => status === 'waiting' && step!.stageStep === again.step!.stageStep + 2,
  );

  await handle.signal(stop);
  const result = await handle.result();
  expect(await listed(`GradusStatus IN ('completed', 'no-success')`)).toEqual(['meanwhile']);
  expect(result).toMatchObject({
    end: 'stopped',
    after: null,
    stages: [{ name: 'warm-start' }, { name: 'rl', end: 'stopped' }],
  });
  const { manifest, state } = await loadCheckpoint(store, result.checkpoint);
  expect(manifest).toMatchObject({
    run: 'asking',
    files: { 'model.safetensors': { sha256: result.checkpoint.weights } },
  });
  expect(state.weights.size).toBeGreaterThan(0);
  expect((await runs.progress(handle, () => true)).status).toBe('stopped');
  expect(await listedAs('stopped')).toEqual(['asking']);
  // Each of these is a part of what it was at some time, and of nothing now.
  for (const was of ['running', 'paused', 'waiting']) {
    expect(await runs.client.workflow.count(`GradusStatus = '${was}'`)).toMatchObject({ count: 0 });
  }
});

test('runs are listed by what they are and how well they do', async () => {
  expect(await listed(`WorkflowType = 'curriculum' AND GradusRun = 'asking'`)).toEqual(['asking']);
  expect(await listed(`WorkflowType = 'curriculum' AND GradusStage = 'rl'`)).toEqual(['asking']);
  expect(await listed(`WorkflowType = 'curriculum' AND GradusMeanReward > -9`)).toContain('asking');
  const groups = await listed(
    `WorkflowType = 'rolloutGroup' AND GradusRun = 'asking' AND GradusStage = 'rl' AND GradusStep = 1`,
  );
  expect(groups.toSorted()).toEqual(['asking/rl/1/0', 'asking/rl/1/1', 'asking/rl/1/2', 'asking/rl/1/3']);
});

test('a later run under the same id has a name of its own, and two runs at once do not touch each other', async () => {
  const first = await (await runs.start('again', withSeed(5))).result();
  const before = await store.list('runs/again/');
  const second = await runs.start('again', withSeed(6));
  const alone: CurriculumResult[] = [first, await second.result()];
  expect((await runs.progress(second, () => true)).run).toBe('again.2');
  expect(alone[1]!.checkpoint.manifest.key).toMatch(/^runs\/again\.2\//);
  expect(await store.list('runs/again/')).toEqual(before);
  expect(alone[1]!.checkpoint.weights).not.toBe(first.checkpoint.weights);

  const together = await Promise.all([runs.start('pair-5', withSeed(5)), runs.start('pair-6', withSeed(6))]);
  const results = await Promise.all(together.map((handle) => handle.result()));
  expect(results.map(({ checkpoint }) => checkpoint.weights)).toEqual(
    alone.map(({ checkpoint }) => checkpoint.weights),
  );
});
