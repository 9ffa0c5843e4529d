import { afterAll, expect, test } from 'vitest';
import { z } from 'zod';
import { deleteRun, planDeletion } from '../../../runs/control/delete-run.ts';
import { readRuns } from '../../../runs/overview/runs.ts';
import type { Sources } from '../../../runs/sources.ts';
import { whyOf } from '../../../runs/overview/why.ts';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import { pinCheckpoints } from '../../../store/training/retention.ts';
import { claimRun } from '../../../store/run/claim-run.ts';
import { jsonCodec } from '../../../store/codec.ts';
import { keepForgottenRun } from '../../support/forgotten-run.ts';
import { until } from '../../support/run-client.ts';
import { DELETES_SOON, startTestInstallation } from '../../support/test-installation.ts';

// Deletions that are killed, made twice, or too late.

const installation = await startTestInstallation({ processes: [], dynamicConfig: DELETES_SOON });
afterAll(() => installation.remove());
const { client } = installation.runs;
const store = await ObjectStore.connect(installation.settings.store);
afterAll(() => store.close());
const sources: Sources = { store, temporal: client };

const start = (type: string, workflowId: string) =>
  client.workflow.start(type, { workflowId, taskQueue: 'nobody', args: [] });

/** Sources of a command that is killed when it has removed one object, or one execution. */
function dying(what: 'executions' | 'objects'): Sources {
  let alive = true;
  const dies =
    <T extends unknown[]>(operation: (...args: T) => Promise<unknown>) =>
    async (...args: T): Promise<unknown> => {
      if (!alive) throw new Error('killed');
      alive = false;
      return operation(...args);
    };
  const remove = dies((key: string) => store.remove([key]));
  const removeInTurn = async (keys: string[]): Promise<void> => {
    // What is gone already is no step further.
    for (const key of keys) if (await store.head(key)) await remove(key);
  };
  const { workflowService } = client;
  const deleteWorkflowExecution = dies((request: object) => workflowService.deleteWorkflowExecution(request));
  const having = <T extends object>(target: T, more: object): T =>
    new Proxy(target, {
      get: (it, name) => (name in more ? (more as T)[name as keyof T] : (Reflect.get(it, name) as unknown)),
    });
  return what === 'objects'
    ? { store: having(store, { remove: removeInTurn }), temporal: client }
    : {
        store,
        temporal: having(client, { workflowService: having(workflowService, { deleteWorkflowExecution }) }),
      };
}

test('a deletion that is killed anywhere can be looked at, and is gone on with; a run of that name which begins then is left alone', async () => {
  const key = `runs/teacher/checkpoints/000003-${'0'.repeat(12)}/manifest.json`;
  const checkpoint = {
    manifest: { key, sha256: '0'.repeat(64), bytes: 1 },
    weights: '0'.repeat(64),
    step: 3,
  };
  await keepForgottenRun(store, 'teacher', 1);
  const allKeys = async () => (await store.list('')).map((one) => one.key);
  const others = await allKeys();
  await keepForgottenRun(store, 'half', 4, { checkpoints: { teacher: checkpoint } });
  await pinCheckpoints(store, 'teacher', 'half', [checkpoint]);
  await (await start('curriculum', 'half')).terminate();
  for (const part of ['half/rl', 'half/rl/1/0']) await (await start('stage', part)).terminate();
  const whole = await until(
    async () => {
      const plan = await planDeletion(sources, 'half');
      return plan.executions.length === 3 && plan.refusals.length === 0 ? plan : undefined;
    },
    300_000,
    () => 'what was terminated is not listed',
  );

  const isThere = async (): Promise<boolean> => {
    const { rows, problems } = await readRuns(sources, { patienceMs: 60_000 });
    expect(problems).toEqual([]);
    return rows.some(({ run }) => run === 'half');
  };
  const deletion = async (by: Sources): Promise<string> =>
    deleteRun(by, await planDeletion(sources, 'half')).then(
      () => 'done',
      (error: Error) => error.message,
    );
  let killed = 0;
  let by = dying('executions');
  for (;;) {
    const ended = await deletion(by);
    if (ended === 'done') break;
    expect(ended).toContain('killed');
    killed++;
    expect(await isThere()).toBe(true);
    await expect(whyOf(sources, 'half')).resolves.toMatchObject({ reasons: [{ kind: 'over' }] });
    by = dying('objects');
  }
  // Before the claim goes the pin, and the last of all is not too late.
  expect(killed).toBe(1 + whole.objects.length);
  expect(await isThere()).toBe(false);
  expect(await allKeys()).toEqual(others);

  // Two at once; and one that was begun before somebody else took the name.
  await keepForgottenRun(store, 'half', 2);
  const plan = await planDeletion(sources, 'half');
  await Promise.all([deleteRun(sources, plan), deleteRun(sources, plan), deleteRun(sources, plan)]);
  expect(await allKeys()).toEqual(others);
  await keepForgottenRun(store, 'half', 2, {}, 'another');
  const another = await allKeys();
  await expect(deleteRun(sources, plan)).rejects.toThrow('another run has begun under its name');
  expect(await allKeys()).toEqual(another);
  await deleteRun(sources, await planDeletion(sources, 'half'));
  // One that has stored nothing yet has pinned what it needs all the same.
  await keepForgottenRun(store, 'half', 0, { checkpoints: { teacher: checkpoint } }, 'another');
  await pinCheckpoints(store, 'teacher', 'half', [checkpoint]);
  const pinned = await allKeys();
  await expect(deleteRun(sources, plan)).rejects.toThrow('another run has begun under its name');
  expect(await allKeys()).toEqual(pinned);
  await deleteRun(sources, await planDeletion(sources, 'half'));
});

test('what an activity writes while its run is deleted goes, too; and a name under which something lies is given to nobody', async () => {
  const others = await store.list('');
  const codec = jsonCodec('what came late', z.object({ late: z.boolean() }));
  const write = (step: number) =>
    store.putIfAbsent(`runs/late/metrics/rl/${step}.json`, codec, { late: true });
  await keepForgottenRun(store, 'late', 2);
  const plan = await planDeletion(sources, 'late');
  await write(3);
  await deleteRun(sources, plan);
  expect(await store.list('')).toEqual(others);

  // A worker that stood still all the while.
  await write(4);
  const claim = { spec: null, import: 'a model' };
  await expect(claimRun(store, 'late', claim)).resolves.toBeNull();
  await deleteRun(sources, await planDeletion(sources, 'late'));
  await expect(claimRun(store, 'late', claim)).resolves.toEqual(claim);
  await expect(claimRun(store, 'late', { ...claim, import: 'another' })).resolves.toEqual(claim);
  await deleteRun(sources, await planDeletion(sources, 'late'));
});
