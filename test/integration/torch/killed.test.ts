import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { settingsFor } from '../../../cli/stack-with-workers.ts';
import { ids } from '../../../core/names.ts';
import type { CheckpointRef } from '../../../core/refs.ts';
import { startStack } from '../../../infra/dev/stack.ts';
import type { Stack } from '../../../infra/dev/stack.ts';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import { findCheckpoints } from '../../../store/training/find-checkpoints.ts';
import { startWorkers } from '../../../workers/all-in-one.ts';
import type { Workers } from '../../../workers/all-in-one.ts';
import { torchProcess } from '../../../workers/torch/process.ts';
import { killAndReplace, killInActivity } from '../../support/kill-workers.ts';
import { RunClient, until } from '../../support/run-client.ts';
import { StallingProxy } from '../../support/stalling-proxy.ts';
import { tinySpec } from '../../support/tiny-spec.ts';
import { TORCH_THREADS, withTorch } from '../../support/torch-learner.ts';

interface StepRecord {
  stage: string;
  step: number;
  checkpoint: CheckpointRef;
}

// A whole run whose learner is the one in PyTorch, and nothing else is another; its worker is killed.

await withTorch((python) => {
  let stateDir: string;
  let stack: Stack;
  let proxy: StallingProxy;
  let workers: Workers;
  let runs: RunClient;
  let store: ObjectStore;
  const spec = tinySpec({ maxSteps: 6 });

  beforeAll(async () => {
    stateDir = await mkdtemp(path.join(tmpdir(), 'gradus-torch-'));
    stack = await startStack(stateDir, { ui: false });
    proxy = await StallingProxy.open({ host: stack.objectStore.endPoint, port: stack.objectStore.port });
    const settings = settingsFor(stack, {});
    settings.store.port = proxy.port;
    workers = await startWorkers(settings, {
      processes: [['orchestrator', 'verifier', 'tool'], ['rollout'], ['learner']],
      learner: torchProcess(python, settings, { env: TORCH_THREADS }),
      logFile: path.join(stateDir, 'logs', 'workers.log'),
    });
    runs = await RunClient.connect(settings);
    store = await ObjectStore.connect(settings.store);
  }, 600_000);

  afterAll(async () => {
    store?.close();
    await runs?.close();
    await workers?.stop();
    await proxy?.close();
    await stack?.stop();
    await rm(stateDir, { recursive: true, force: true });
  });

  /** Kills the worker in the middle of an upload of a checkpoint, which does not come to its end before. */
  async function killInUpload(): Promise<void> {
    await proxy.stallNext(/^PUT \S+\/checkpoints\/(?!000000)\S+\/optimizer\.safetensors/, 50_000);
    await killAndReplace(workers, 'learner');
  }

  /** What every step of a run has come to: the records of its learner, and the files of the checkpoints that are left. */
  async function madeBy(run: string) {
    const records = await Promise.all(
      (await store.list(`runs/${run}/metrics/`)).map(async ({ key }) => {
        const ref = (await store.head(key))!;
        const { stage, step, checkpoint } = (await store.getJson(ref)) as unknown as StepRecord;
        return [stage, step, checkpoint.weights];
      }),
    );
    const { checkpoints } = await findCheckpoints(store, run);
    const files = checkpoints.map(({ ref, manifest }) => [
      ref.step,
      ...Object.entries(manifest.files).map(([name, { sha256 }]) => [name, sha256]),
    ]);
    const { folders } = await store.listFolder(`runs/${run}/checkpoints/`);
    return { records, files, folders: folders.length, backends: checkpoints.map((c) => c.manifest.backend) };
  }

  test('a run that is cancelled stops its step, and the worker goes on to the next run', async () => {
    const handle = await runs.start('cancelled', spec);
    await until(
      async () => {
        const seen = await runs.pending(ids.stage('cancelled', 'warm-start'), 'trainStep');
        return typeof seen !== 'string' && seen.started ? true : undefined;
      },
      300_000,
      () => 'no step was begun',
    );
    await handle.cancel();
    await expect(handle.result()).rejects.toThrow();
    expect(await store.list('runs/cancelled/metrics/')).toEqual([]);
  }, 600_000);

  test('a run ends, and killed in mid-step and in an upload it ends with the same checkpoints', async () => {
    await (await runs.start('left-alone', spec)).result();
    const expected = await madeBy('left-alone');
    expect(expected.records.length).toBeGreaterThan(5);
    expect(expected.folders).toBe(expected.files.length);
    expect(expected.backends.slice(1).every((backend) => backend.startsWith('pytorch '))).toBe(true);

    const inStep = await runs.start('killed-in-step', spec);
    const stage = () => ids.stage('killed-in-step', 'rl');
    await killInActivity({ workers, runs }, stage, 'trainStep', 'learner');
    await inStep.result();
    expect(await madeBy('killed-in-step')).toEqual(expected);

    const inUpload = await runs.start('killed-in-upload', spec);
    await killInUpload();
    await inUpload.result();
    expect(await madeBy('killed-in-upload')).toEqual(expected);
  }, 600_000);
});
