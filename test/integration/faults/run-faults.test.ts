import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { ApplicationFailure } from '@temporalio/common';
import { WorkflowFailedError } from '@temporalio/client';
import type { WorkflowHandle } from '@temporalio/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { batchKey, checkpointsPrefix } from '../../../store/keys.ts';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import type { CurriculumResult } from '../../../core/training/curriculum.ts';
import { ids } from '../../../core/names.ts';
import type { Role } from '../../../core/names.ts';
import { PROCESSES } from '../../../workers/all-in-one.ts';
import { dynamicConfig } from '../../../infra/dev/temporal-config.ts';
import { decide, pause, resume } from '../../../workflows/control/messages.ts';
import { briefSpec } from '../../support/brief-spec.ts';
import { killAndReplace } from '../../support/kill-workers.ts';
import { until, untilBegun } from '../../support/run-client.ts';
import type { RunClient } from '../../support/run-client.ts';
import { startTestInstallation } from '../../support/test-installation.ts';
import type { TestInstallation } from '../../support/test-installation.ts';
import { DONE } from '../../support/ended.ts';

// What goes wrong around a run, end to end. The local cache of objects cannot be used at all here (where its
// folder should be is a file): that costs time and nothing else.

const STEPS = 4;
const spec = briefSpec({ maxSteps: STEPS });

let installation: TestInstallation;
let store: ObjectStore;
let runs: RunClient;
let leftAlone: CurriculumResult;
let restarts = 0;

beforeAll(async () => {
  installation = await startTestInstallation({
    env: { GRADUS_BLOB_CACHE: path.join(import.meta.filename, 'no-folder') },
  });
  ({ runs } = installation);
  const { cacheDir: _, ...settings } = installation.settings.store;
  store = await ObjectStore.connect(settings);
  leftAlone = await (await runs.start('left-alone', spec)).result();
});

afterAll(async () => {
  store?.close();
  await installation?.remove();
});

/** The failure of a run, and what a person can act on: its first cause. */
async function failureOf(run: Promise<unknown>): Promise<{ root: Error; failures: ApplicationFailure[] }> {
  const error = await run.then(
    () => undefined,
    (caught: unknown) => caught,
  );
  if (!(error instanceof WorkflowFailedError)) throw new Error('the run did not fail', { cause: error });
  const chain: Error[] = [];
  for (let at: unknown = error; at instanceof Error; at = at.cause) chain.push(at);
  const failures = chain.filter((one): one is ApplicationFailure => one instanceof ApplicationFailure);
  return { root: failures[0] ?? error, failures };
}

const fileOf = (key: string): string =>
  path.join(installation.stateDir, 'object-store', 'objects', 'gradus', key);

async function flipByte(key: string): Promise<void> {
  const bytes = await readFile(fileOf(key));
  const at = bytes.length - 1;
  bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at);
  await writeFile(fileOf(key), bytes);
}

/** Pauses a run between two steps of its stage `rl`, and gives the number of the last one. */
async function pausedBetweenSteps(handle: WorkflowHandle): Promise<number> {
  const stage = ids.stage(handle.workflowId, 'rl');
  await untilBegun(runs, ids.group(handle.workflowId, 'rl', 1, 0));
  await handle.signal(pause);
  const { step } = await runs.progress(
    handle,
    (shown) => shown.status === 'paused' && shown.step?.stage === 'rl',
  );
  await runs.settled(stage);
  return step!.stageStep;
}

async function restartWorker(role: Role): Promise<void> {
  await killAndReplace(installation.workers, role);
  restarts++;
}

test.each([
  [
    'a field that does not exist',
    'unknown-field',
    { ...spec, stages: [spec.stages[0], { ...spec.stages[1], maxStep: 3 }] },
    'stages[1].maxStep: unknown field; did you mean "maxSteps"?',
  ],
  [
    'an environment that no worker has',
    'no-environment',
    briefSpec({ environment: 'calculater' }),
    'stages[1].tasks[0].environment: no environment "calculater"; did you mean "calculator"?',
  ],
])('a spec with %s is refused at once, and nothing is left of it', async (_, run, wrong, message) => {
  const handle = await runs.start(run, wrong);
  const { root } = await failureOf(handle.result());
  expect(root).toMatchObject({ type: 'gradus.spec.invalid', nonRetryable: true });
  expect(root.message).toContain(message);
  const { events } = await handle.fetchHistory();
  const started = events!.flatMap((event) => event.activityTaskStartedEventAttributes ?? []);
  expect(started).toMatchObject([{ attempt: 1 }]);
  expect(await store.list(`runs/${run}/`)).toEqual([]);
});

test('the object store is away for some seconds: the run waits and ends as it would have', async () => {
  const handle = await runs.start('store-away', spec);
  await runs.progress(handle, ({ phase }) => phase === 'rl');
  installation.stack.objectStore.kill();
  await until(
    async () => {
      const query = `WorkflowId STARTS_WITH 'store-away' AND ExecutionStatus = 'Running'`;
      for await (const { workflowId, runId } of runs.client.workflow.list({ query })) {
        const { raw } = await runs.client.workflow.getHandle(workflowId, runId).describe();
        for (const { attempt, lastFailure } of raw.pendingActivities ?? []) {
          if (attempt! >= 4 && lastFailure?.message?.includes('npm run dev')) return true;
        }
      }
      return undefined;
    },
    300_000,
    () => 'no activity tries again',
  );
  await installation.stack.objectStore.restart();
  const result = await handle.result();
  expect(result.checkpoint.weights).toBe(leftAlone.checkpoint.weights);
});

test('a damaged batch stops no run: a person is asked, restores it, and the run ends with the same weights', async () => {
  const handle = await runs.start('bad-batch', spec);
  const next = (await pausedBetweenSteps(handle)) + 1;
  // The learner, which has nothing to do between steps, is held up while the batch that it is to read is damaged.
  const learner = installation.workers.pid('learner')!;
  const key = batchKey('bad-batch', 'rl', next);
  process.kill(learner, 'SIGSTOP');
  try {
    await handle.signal(resume);
    await until(
      async () => ((await store.head(key)) === undefined ? undefined : true),
      300_000,
      () => 'no batch was written',
    );
    await flipByte(key);
  } finally {
    process.kill(learner, 'SIGCONT');
  }
  const { question } = await runs.progress(handle, ({ status }) => status === 'waiting');
  expect(question!.reason).toContain(key);
  expect(question!.reason).toContain('Restore it');
  expect(question!.answers).toEqual([
    { answer: 'continue', effect: 'try again, after you have put the object back as it was' },
    { answer: 'stop', effect: 'end the run with its checkpoint' },
  ]);
  // It is asked again as long as it is damaged.
  await handle.executeUpdate(decide, { args: ['continue'] });
  await runs.progress(
    handle,
    ({ question: again }) => again !== null && again.id !== question!.id && again.reason === question!.reason,
  );
  await flipByte(key);
  await handle.executeUpdate(decide, { args: ['continue'] });
  const result = await handle.result();
  expect(result).toMatchObject({ end: DONE, steps: leftAlone.steps });
  expect(result.checkpoint.weights).toBe(leftAlone.checkpoint.weights);
});

test('a damaged checkpoint is asked about once for all groups; the run goes on in its step, or stops before it', async () => {
  const handles = await Promise.all(['bad-checkpoint', 'stopped'].map((run) => runs.start(run, spec)));
  const damaged = new Map<string, string>();
  // Both at once: neither may come to its end while the other is waited for.
  await Promise.all(
    handles.map(async (handle) => {
      await pausedBetweenSteps(handle);
      const { checkpoint } = await runs.progress(handle, () => true);
      const weights = (await store.list(checkpointsPrefix(handle.workflowId)))
        .map(({ key }) => key)
        .find((key) => key.includes(checkpoint!.weights.slice(0, 12)) && key.endsWith('model.safetensors'))!;
      await flipByte(weights);
      damaged.set(handle.workflowId, weights);
    }),
  );
  // It has the right weights in memory.
  await restartWorker('rollout');
  const steps: number[] = [];
  for (const handle of handles) {
    steps.push((await runs.progress(handle, () => true)).step!.step);
    await handle.signal(resume);
  }
  for (const handle of handles) {
    const { question } = await runs.progress(handle, ({ status }) => status === 'waiting');
    expect(question!.reason).toContain(damaged.get(handle.workflowId));
    expect(question!.reason).toContain('Restore it');
    // Every group of the step waits for the one answer.
    const query = `WorkflowId STARTS_WITH '${handle.workflowId}/rl/' AND ExecutionStatus = 'Running'`;
    await until(
      async () => ((await runs.client.workflow.count(query)).count === 4 ? true : undefined),
      300_000,
      () => 'not every group is there',
    );
    for await (const { workflowId } of runs.client.workflow.list({ query })) await runs.settled(workflowId);
  }
  const [mended, stopped] = handles;
  await stopped!.executeUpdate(decide, { args: ['stop'] });
  expect(await stopped!.result()).toMatchObject({
    end: 'stopped',
    steps: steps[1],
    stages: [
      { name: 'warm-start', end: 'graduated' },
      { name: 'rl', end: 'stopped', reason: 'stopped by a person in the middle of a step' },
    ],
  });
  await flipByte(damaged.get('bad-checkpoint')!);
  await mended!.executeUpdate(decide, { args: ['continue'] });
  const result = await mended!.result();
  expect(result.checkpoint.weights).toBe(leftAlone.checkpoint.weights);
});

test('histories are bounded: a stage continues as new as often as it needs, and ends with the same weights', async () => {
  const limit = { 'limit.historyCount.suggestContinueAsNew': [{ value: 60, constraints: {} }] };
  const file = path.join(installation.stateDir, 'temporal', 'dynamic-config.yaml');
  await writeFile(file, JSON.stringify({ ...dynamicConfig(), ...limit }));
  await installation.stack.temporal.restart();

  const result = await (await runs.start('continued', spec)).result();
  expect(result.checkpoint.weights).toBe(leftAlone.checkpoint.weights);
  const last = await runs.client.workflow.getHandle('continued/rl').describe();
  expect(last.raw.workflowExecutionInfo!.firstRunId).not.toBe(last.runId);
  expect(last.historyLength).toBeLessThan(150);
});

test('each worker process said once that its cache is of no use, and nothing broke unheard', async () => {
  const log = await readFile(path.join(installation.stateDir, 'logs', 'workers.log'), 'utf8');
  const warnings = log.match(/the local cache of objects could not be written: ENOTDIR/g) ?? [];
  expect(warnings.length).toBeGreaterThan(0);
  expect(warnings.length).toBeLessThanOrEqual(PROCESSES.length + restarts);
  expect(log).not.toMatch(/Unhandled|TypeError|ReferenceError/);
});
