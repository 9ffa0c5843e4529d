import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { TYPESCRIPT } from '../../../engine/own-module.ts';
import { settingsFor } from '../../../cli/stack-with-workers.ts';
import { startStack } from '../../../infra/dev/stack.ts';
import type { Stack } from '../../../infra/dev/stack.ts';
import { settingsToEnv } from '../../../workers/settings.ts';
import { onFreePorts } from '../../support/free-ports.ts';
import { RunClient } from '../../support/run-client.ts';

// What happens when something keeps the event loop of a worker for longer than a heartbeat may be silent.

let stateDir: string;
let stack: Stack;
let runs: RunClient;
beforeAll(async () => {
  stateDir = await mkdtemp(path.join(tmpdir(), 'gradus-kept-loop-'));
  stack = await onFreePorts(({ s3Port }) => startStack(stateDir, { ui: false, s3Port }));
  runs = await RunClient.connect(settingsFor(stack));
});
afterAll(async () => {
  await runs?.close();
  await stack?.stop();
  await rm(stateDir, { recursive: true, force: true });
});

const workers: ChildProcess[] = [];
afterEach(() => {
  for (const worker of workers.splice(0)) worker.kill('SIGKILL');
});

function startWorker(): { worker: ChildProcess; said: () => string } {
  const worker = spawn(process.execPath, ['--import', TYPESCRIPT, 'kept-loop-worker.ts'], {
    cwd: import.meta.dirname,
    env: { PATH: process.env['PATH'], HOME: process.env['HOME'], ...settingsToEnv(settingsFor(stack)) },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  workers.push(worker);
  let text = '';
  worker.stderr.on('data', (more) => (text += String(more)));
  return { worker, said: () => text };
}

const start = (workflowId: string, seconds: number) =>
  runs.client.workflow.start('keepsLoop', { workflowId, taskQueue: 'kept-loop', args: [{ seconds }] });

test('an activity that keeps the loop for nine seconds is late, and not tried again', async () => {
  const { said } = startWorker();
  const handle = await start('nine-seconds', 9);
  expect(await handle.result()).toBe(1);
  expect(said()).toMatch(/its event loop is kept since 5 s, while running keepLoop of nine-seconds/);
});

test('one that keeps it for ever ends its process, named with the function, and the next attempt goes on', async () => {
  const { worker, said } = startWorker();
  const ended = once(worker, 'exit');
  const handle = await start('for-ever', 1e9);
  expect(await ended).toEqual([null, 'SIGKILL']);
  expect(said()).toMatch(/at keepForSeconds \(.*kept-loop-worker\.ts\)/);
  expect(said()).toContain('while running keepLoop of for-ever (attempt 1); it is ended');
  startWorker();
  expect(await handle.result()).toBe(2);
});
