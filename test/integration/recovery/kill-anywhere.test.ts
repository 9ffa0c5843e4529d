import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { WorkflowHandle } from '@temporalio/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { settingsFor } from '../../../cli/stack-with-workers.ts';
import { ids } from '../../../core/names.ts';
import type { Role } from '../../../core/names.ts';
import type { CurriculumResult } from '../../../core/training/curriculum.ts';
import { startStack } from '../../../infra/dev/stack.ts';
import type { Stack } from '../../../infra/dev/stack.ts';
import { startWorkers } from '../../../workers/all-in-one.ts';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import type { Workers } from '../../../workers/all-in-one.ts';
import { killAndReplace, killInActivity } from '../../support/kill-workers.ts';
import { RunClient } from '../../support/run-client.ts';
import { storedFacts } from '../../support/stored-facts.ts';
import { StallingProxy } from '../../support/stalling-proxy.ts';
import { tinySpec } from '../../support/tiny-spec.ts';

// The promise of the project: killed anywhere, a run ends with the same bytes as the run that was left alone. Real
// servers, real workers, SIGKILL; the store is reached through a proxy that can hold an upload up in its middle.

const processes: Role[][] = [['orchestrator'], ['verifier'], ['tool'], ['rollout'], ['learner']];

let stateDir: string;
let stack: Stack;
let proxy: StallingProxy;
let workers: Workers;
let runs: RunClient;
let leftAlone: CurriculumResult;
let store: ObjectStore;

// One child workflow and one advance a step, long enough to be hit.
const spec = tinySpec({ maxSteps: 6, groupsPerStep: 64, groupsPerWorkflow: 64 });

beforeAll(async () => {
  stateDir = await mkdtemp(path.join(tmpdir(), 'gradus-recovery-'));
  stack = await startStack(stateDir, { ui: false });
  proxy = await StallingProxy.open({ host: stack.objectStore.endPoint, port: stack.objectStore.port });
  const settings = settingsFor(stack, { GRADUS_PAYLOAD_LIMIT: String(64 * 1024) });
  settings.store.port = proxy.port;
  workers = await startWorkers(settings, {
    processes,
    logFile: path.join(stateDir, 'logs', 'workers.log'),
  });
  store = await ObjectStore.connect(settings.store);
  runs = await RunClient.connect(settings);
  const handle = await runs.start('left-alone', spec);
  leftAlone = await handle.result();
}, 600_000);

afterAll(async () => {
  store?.close();
  await runs?.close();
  await workers?.stop();
  await proxy?.close();
  await stack?.stop();
  await rm(stateDir, { recursive: true, force: true });
});

const killWorkers = (...roles: Role[]) => killAndReplace(workers, ...roles);
const killDuring = (at: (step: number) => string, activity: string, role: Role) =>
  killInActivity({ workers, runs }, at, activity, role);

async function stepsReach(handle: WorkflowHandle, step: number): Promise<void> {
  await runs.progress(
    handle,
    ({ phase, step: report }) => phase === 'rl' && (report?.stageStep ?? 0) >= step,
  );
}

test('a run whose workers are killed in an episode, a learner step and an upload ends with the same weights', async () => {
  const handle = await runs.start('workers-killed', spec);
  await stepsReach(handle, 1);
  await killDuring((step) => ids.group('workers-killed', 'rl', step, 0), 'advance', 'rollout');

  await killDuring(() => ids.stage('workers-killed', 'rl'), 'trainStep', 'learner');

  await proxy.stallNext(/^PUT \S+\/optimizer\.safetensors/, 50_000);
  await killWorkers('learner');

  const result = await handle.result();
  expect(result.checkpoint.weights).toBe(leftAlone.checkpoint.weights);
  expect(result.after).toMatchObject({ arms: leftAlone.after!.arms, outcomes: leftAlone.after!.outcomes });
  expect(await storedFacts(store, 'workers-killed')).toEqual(await storedFacts(store, 'left-alone'));
}, 600_000);

test('a run whose servers and all workers are killed ends with the same weights', async () => {
  const handle = await runs.start('servers-killed', spec);
  await stepsReach(handle, 1);
  process.kill(stack.temporal.pid, 'SIGKILL');
  await stepsReach(handle, 2);
  process.kill(stack.objectStore.pid, 'SIGKILL');
  await stepsReach(handle, 3);
  await killWorkers(...processes.flat());
  await stepsReach(handle, 4);
  process.kill(stack.temporal.pid, 'SIGKILL');
  process.kill(stack.objectStore.pid, 'SIGKILL');
  await killWorkers('orchestrator', 'rollout', 'learner');

  const result = await handle.result();
  expect(result.checkpoint.weights).toBe(leftAlone.checkpoint.weights);
  expect(await storedFacts(store, 'servers-killed')).toEqual(await storedFacts(store, 'left-alone'));
}, 600_000);

test('nobody was told to swallow what went wrong: worker logs name the kills and nothing else', async () => {
  const log = await readFile(path.join(stateDir, 'logs', 'workers.log'), 'utf8');
  expect(log).not.toMatch(/Unhandled|TypeError|ReferenceError/);
});
