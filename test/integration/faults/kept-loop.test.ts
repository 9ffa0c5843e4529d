import { fork, spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { defaultPayloadConverter } from '@temporalio/common';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { TestContext } from 'vitest';
import { TYPESCRIPT } from '../../../engine/own-module.ts';
import { settingsFor } from '../../../cli/stack-with-workers.ts';
import { startStack } from '../../../infra/dev/stack.ts';
import type { Stack } from '../../../infra/dev/stack.ts';
import { lostAttemptsReporter } from '../../../workers/fail-lost-attempts.ts';
import type { WorkerMessage } from '../../../workers/loop-watch.ts';
import { SupervisedProcess } from '../../../workers/supervised-process.ts';
import { settingsToEnv } from '../../../workers/settings.ts';
import { onFreePorts } from '../../support/free-ports.ts';
import { RunClient, until } from '../../support/run-client.ts';

// What becomes of activities when a worker is slow, stands still or is killed. Tests wait, most of their time, and so they
// do at once, each with a queue and workers of its own; only the one that stops the server is alone.

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

/** Long enough for a test to see what a kept loop makes of a worker. */
const LATE = 300;
const envOf = (queue: string, endAfterSeconds = LATE): NodeJS.ProcessEnv => ({
  PATH: process.env['PATH'],
  HOME: process.env['HOME'],
  GRADUS_TEST_QUEUE: queue,
  GRADUS_TEST_END_AFTER: String(endAfterSeconds),
  ...settingsToEnv(settingsFor(stack)),
});

/** Gone when the test is over. */
function startWorker(
  queue: string,
  { onTestFinished }: TestContext,
  endAfterSeconds?: number,
): { worker: ChildProcess; said: () => string } {
  const worker = spawn(process.execPath, ['--import', TYPESCRIPT, 'kept-loop-worker.ts'], {
    cwd: import.meta.dirname,
    env: envOf(queue, endAfterSeconds),
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  });
  onTestFinished(() => void worker.kill('SIGKILL'));
  let text = '';
  worker.stderr!.on('data', (more) => (text += String(more)));
  return { worker, said: () => text };
}

/** Under the name of its queue. */
const start = (queue: string, request: { seconds: number; waits?: number; heartbeat?: number }) =>
  runs.client.workflow.start('keepsLoop', { workflowId: queue, taskQueue: queue, args: [request] });

const begun = (output: () => string): Promise<true> =>
  until(
    async () => (output().includes('keepLoop begins') ? true : undefined),
    300_000,
    () => 'the activity did not begin',
  );

test.concurrent(
  'an activity that keeps the loop for longer than its heartbeat time-out is late, and not tried again',
  async (context) => {
    const { said } = startWorker('late', context);
    const handle = await start('late', { seconds: 15, heartbeat: 12 });
    expect(await handle.result()).toBe(1);
    expect(said()).toMatch(/its event loop is kept since 5 s, while running keepLoop of late/);
  },
);

test.concurrent(
  'a worker that gets no processor for nine seconds goes on, and its activity is not tried again',
  async (context) => {
    const { worker, said } = startWorker('starved', context);
    const handle = await start('starved', { seconds: 0, waits: 3 });
    await begun(said);
    worker.kill('SIGSTOP');
    await delay(9000);
    worker.kill('SIGCONT');
    expect(await handle.result()).toBe(1);
  },
);

test.concurrent('heartbeats of the thread carry the details that the activity gave last', async (context) => {
  const { worker, said } = startWorker('details', context);
  // It is killed when its heartbeat was seen.
  const handle = await start('details', { seconds: LATE, waits: 2 });
  await begun(said);
  await until(
    async () => (said().includes('its event loop is kept since 5 s') ? true : undefined),
    300_000,
    () => 'the loop was not kept',
  );
  const kept = Date.now();
  // From now on only the thread can give one.
  const given = await until(
    async () => {
      const pending = (await handle.describe()).raw.pendingActivities?.[0];
      const at = Number(pending?.lastHeartbeatTime?.seconds ?? 0) * 1000;
      return at > kept ? pending!.heartbeatDetails!.payloads![0]! : undefined;
    },
    300_000,
    () => 'no heartbeat while the loop was kept',
  );
  expect(defaultPayloadConverter.fromPayload(given)).toEqual({ waits: 2 });
  worker.kill('SIGKILL');
  await handle.terminate('seen enough');
});

test.concurrent(
  'a worker whose supervisor is gone finishes what it has, and ends in order',
  async (context) => {
    const { worker, said } = startWorker('no-supervisor', context);
    const handle = await start('no-supervisor', { seconds: 0, waits: 5 });
    await begun(said);
    const ended = once(worker, 'exit');
    worker.disconnect();
    expect(await ended).toEqual([0, null]);
    expect(said()).not.toContain('ERR_IPC_CHANNEL_CLOSED');
    // The workflow needs a worker; the attempt was not lost.
    startWorker('no-supervisor', context);
    expect(await handle.result()).toBe(1);
  },
);

test.concurrent(
  'an attempt whose supervised worker is killed is tried again at once, and says why',
  async () => {
    const settings = settingsFor(stack);
    const supervised = new SupervisedProcess(
      {
        title: 'the worker for kept loops',
        spawn: () =>
          fork(path.join(import.meta.dirname, 'kept-loop-worker.ts'), [], {
            execArgv: ['--import', TYPESCRIPT],
            env: envOf('killed'),
            stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
          }),
        whenReady: (child, ready) =>
          child.on('message', (message) => {
            if ('descriptions' in (message as object)) ready([]);
          }),
        onMessage: (child, heard) => child.on('message', (message) => heard(message as WorkerMessage)),
      },
      { onLost: lostAttemptsReporter(settings, (problem) => events.push(problem)) },
    );
    const events: string[] = [];
    try {
      await supervised.up();
      const handle = await start('killed', { seconds: 0, waits: 120 });
      await until(
        async () =>
          (await handle.describe()).raw.pendingActivities?.[0]?.heartbeatDetails ? true : undefined,
        300_000,
        () => 'the activity did not begin',
      );
      process.kill(supervised.pid!, 'SIGKILL');
      expect(await handle.result()).toBe(2);
      const { events: history } = await handle.fetchHistory();
      const started = history!.flatMap((event) => event.activityTaskStartedEventAttributes ?? []);
      expect(started.map(({ lastFailure }) => lastFailure?.message)).toEqual([
        'the worker for kept loops died (SIGKILL)',
      ]);
      expect(events).toEqual([]);
    } finally {
      await supervised.stop();
    }
  },
);

test.concurrent(
  'one that keeps it for ever ends its process, named with the function, and the next attempt goes on',
  async (context) => {
    const { worker, said } = startWorker('for-ever', context, 15);
    const ended = once(worker, 'exit');
    const handle = await start('for-ever', { seconds: 1e9, heartbeat: 6 });
    expect(await ended).toEqual([null, 'SIGKILL']);
    expect(said()).toMatch(/at keepForSeconds \(.*kept-loop-worker\.ts\)/);
    expect(said()).toContain('while running keepLoop of for-ever (attempt 1); it is ended');
    startWorker('for-ever', context);
    // The second, but where the server missed a heartbeat before the end, and gave that one to the worker, too.
    expect(await handle.result()).toBeGreaterThan(1);
  },
);

test('a server that stands still for nine seconds takes no worker for dead', async (context) => {
  const { said } = startWorker('server-stalls', context);
  const handle = await start('server-stalls', { seconds: 0, waits: 3 });
  await begun(said);
  process.kill(stack.temporal.pid, 'SIGSTOP');
  await delay(9000);
  process.kill(stack.temporal.pid, 'SIGCONT');
  expect(await handle.result()).toBe(1);
});
