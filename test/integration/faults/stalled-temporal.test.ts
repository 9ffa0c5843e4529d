import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Client, WorkflowFailedError } from '@temporalio/client';
import getPort from 'get-port';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connectPatiently } from '../../../cli/patient-connection.ts';
import { startStack } from '../../../infra/dev/stack.ts';
import type { Stack } from '../../../infra/dev/stack.ts';
import { until } from '../../support/run-client.ts';
import { StallingProxy } from '../../support/stalling-proxy.ts';

let stateDir: string;
let stack: Stack;
beforeAll(async () => {
  stateDir = await mkdtemp(path.join(tmpdir(), 'gradus-stalled-'));
  stack = await startStack(stateDir, { ui: false, s3Port: await getPort({ host: '127.0.0.1' }) });
});
afterAll(async () => {
  await stack?.stop();
  await rm(stateDir, { recursive: true, force: true });
});

test.concurrent(
  'a command that waits for a run outlives a server that stands still until its connection is given up',
  async () => {
    const { address, namespace, pid } = stack.temporal;
    const [host, port] = address.split(':') as [string, string];
    const proxy = await StallingProxy.open({ host, port: Number(port) });
    const connection = await connectPatiently(`${host}:${proxy.port}`, {
      say: () => undefined,
      // Temporal's client asks after 30 s of silence and waits for 15; much sooner, and the server takes offence.
      channelArgs: { 'grpc.keepalive_time_ms': 4000, 'grpc.keepalive_timeout_ms': 1000 },
    });
    const client = new Client({ connection, namespace });
    const handle = await client.workflow.start('nobody-serves', { workflowId: 'waits', taskQueue: 'none' });
    const result = handle.result();
    result.catch(() => undefined);
    // The long poll for the result is on its way to the server.
    await delay(1000);
    process.kill(pid, 'SIGSTOP');
    const described = handle.describe();
    try {
      await until(
        async () => (proxy.opened > 1 ? true : undefined),
        300_000,
        () => 'the connection is not given up',
      );
    } finally {
      process.kill(pid, 'SIGCONT');
    }
    expect((await described).status.name).toBe('RUNNING');
    await handle.terminate('the end');
    await expect(result).rejects.toThrow(WorkflowFailedError);
    await connection.close();
    await proxy.close();
  },
);

test.concurrent('a server that is not there any more ends the command in words', async () => {
  const port = await getPort({ host: '127.0.0.1' });
  const connecting = connectPatiently(`127.0.0.1:${port}`, { say: () => undefined, minutes: 0.01 });
  await expect(connecting).rejects.toMatchObject({ type: 'temporal-unreachable' });
});
