import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { Client as TemporalClient, Connection } from '@temporalio/client';
import { defineSearchAttributeKey, TypedSearchAttributes } from '@temporalio/common';
import { Client as S3Client } from 'minio';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { runCommand } from '../../../infra/setup/command.ts';
import { isAlive } from '../../../infra/setup/file-lock.ts';
import { findBinary, requireBinary } from '../../../infra/setup/server-binaries.ts';
import { readStack } from '../../../infra/dev/stack-addresses.ts';
import { startStack } from '../../../infra/dev/stack.ts';
import type { Stack, StackOptions } from '../../../infra/dev/stack.ts';
import type { ObjectStoreLocation } from '../../../infra/dev/stack-addresses.ts';

let folder: string;
let stacks: Stack[];
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'gradus-stack-'));
  stacks = [];
});
afterEach(async () => {
  await Promise.all(stacks.map((stack) => stack.stop()));
  await rm(folder, { recursive: true });
});

async function start(name: string, options: StackOptions = {}): Promise<Stack> {
  const stack = await startStack(path.join(folder, name), { ui: false, ...options });
  stacks.push(stack);
  return stack;
}

function s3(store: ObjectStoreLocation): S3Client {
  const { endPoint, port, useSSL, accessKey, secretKey } = store;
  return new S3Client({ endPoint, port, useSSL, accessKey, secretKey, region: 'us-east-1' });
}

async function put(store: ObjectStoreLocation, key: string, text: string): Promise<void> {
  await s3(store).putObject(store.bucket, key, text);
}

async function get(store: ObjectStoreLocation, key: string): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of await s3(store).getObject(store.bucket, key)) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

/** A Temporal CLI whose development server can serve. */
const cli = await findBinary('temporal-cli');

const RUN = defineSearchAttributeKey('GradusRun', 'KEYWORD');
const REWARD = defineSearchAttributeKey('GradusMeanReward', 'DOUBLE');

async function withTemporal<T>(address: string, work: (client: TemporalClient) => Promise<T>): Promise<T> {
  const connection = await Connection.connect({ address });
  try {
    return await work(new TemporalClient({ connection }));
  } finally {
    await connection.close();
  }
}

/** No worker serves it: it stays open, which is all that these tests need. */
async function startWorkflow(stack: Stack, workflowId: string): Promise<void> {
  await withTemporal(stack.temporal.address, async (client) => {
    await client.workflow.start('curriculum', {
      workflowId,
      taskQueue: 'nobody',
      typedSearchAttributes: new TypedSearchAttributes([
        { key: RUN, value: workflowId },
        { key: REWARD, value: 0.5 },
      ]),
    });
  });
}

async function statusOf(stack: Stack, workflowId: string): Promise<string> {
  return withTemporal(stack.temporal.address, async (client) => {
    const description = await client.workflow.getHandle(workflowId).describe();
    return description.status.name;
  });
}

const listed = (stack: Stack, run: string): Promise<string[]> =>
  withTemporal(stack.temporal.address, async (client) => {
    const found: string[] = [];
    for await (const { workflowId } of client.workflow.list({ query: `GradusRun = '${run}'` })) {
      found.push(workflowId);
    }
    return found;
  });

async function untilGone(pids: readonly number[]): Promise<void> {
  await vi.waitFor(() => expect(pids.filter((pid) => isAlive(pid))).toEqual([]), {
    timeout: 120_000,
    interval: 50,
  });
}

describe('kill -9', () => {
  test('of each server loses nothing that was written', async () => {
    const stack = await start('a');
    const id = randomUUID();
    await startWorkflow(stack, id);
    await put(stack.objectStore, 'kept/object', 'bytes');
    const before = [stack.temporal.pid, stack.objectStore.pid];

    stack.temporal.kill();
    stack.objectStore.kill();
    await untilGone(before);
    await Promise.all([stack.temporal.restart(), stack.objectStore.restart()]);

    expect([stack.temporal.pid, stack.objectStore.pid]).not.toEqual(before);
    expect(await statusOf(stack, id)).toBe('RUNNING');
    expect(await get(stack.objectStore, 'kept/object')).toBe('bytes');
  });

  test('of a server from outside brings it back at the same address, and says so', async () => {
    const events: string[] = [];
    const stack = await start('a', { onEvent: (text) => events.push(text) });
    await put(stack.objectStore, 'kept', 'bytes');
    process.kill(stack.objectStore.pid, 'SIGKILL');
    await vi.waitFor(() => expect(events).toContain('the object store is back'), { timeout: 120_000 });
    expect(await get(stack.objectStore, 'kept')).toBe('bytes');
  });

  test('of the process that started them ends the servers, and the next start finds its data', async () => {
    const stateDir = path.join(folder, 'a');
    const holder = path.join(import.meta.dirname, 'hold-stack.ts');
    const child = spawn(process.execPath, ['--import', 'tsx', holder, stateDir], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
    const pids = JSON.parse(line) as number[];
    expect(pids.map((pid) => isAlive(pid))).toEqual([true, true, true]);
    const addresses = await readStack(stateDir);
    await put(addresses.objectStore, 'kept', 'bytes');

    // It and its servers are still ending when the next start begins.
    const stack = await start('a', {
      onEvent: (text) => {
        if (text.startsWith(`waiting for process ${child.pid}`)) child.kill('SIGKILL');
      },
    });
    expect(child.killed).toBe(true);
    await untilGone(pids);
    expect(stack.temporal.address).toBe(addresses.temporal.address);
    expect(await get(stack.objectStore, 'kept')).toBe('bytes');
  });
});

test.runIf(cli !== undefined)(
  "a Temporal CLI's development server serves like the server, web interface and search attributes included, and loses nothing when it is killed",
  async () => {
    vi.stubEnv('GRADUS_TEMPORAL_SERVER', cli!.path);
    try {
      const events: string[] = [];
      const stack = await start('a', { ui: true, onEvent: (text) => events.push(text) });
      // Before it, perhaps, that others on this machine are starting servers.
      expect(events).toContainEqual(
        expect.stringMatching(/development server of Temporal's CLI, which GRADUS_TEMPORAL_SERVER names/),
      );
      const id = randomUUID();
      await startWorkflow(stack, id);
      expect((await fetch(stack.temporal.uiAddress!)).status).toBe(200);

      process.kill(stack.temporal.pid, 'SIGKILL');
      await vi.waitFor(() => expect(events).toContain('the Temporal server is back'), { timeout: 120_000 });
      expect(await statusOf(stack, id)).toBe('RUNNING');
      await vi.waitFor(async () => expect(await listed(stack, id)).toEqual([id]), { timeout: 120_000 });
    } finally {
      vi.unstubAllEnvs();
    }
    // Its runs are in a database of its own kind.
    await Promise.all(stacks.map((stack) => stack.stop()));
    vi.stubEnv('GRADUS_TEMPORAL_SERVER', process.execPath);
    try {
      await expect(start('a')).rejects.toMatchObject({ type: 'binary-missing' });
    } finally {
      vi.unstubAllEnvs();
    }
  },
);

test('a stopped stack leaves no process, and its data for the next start', async () => {
  const first = await start('a');
  const id = randomUUID();
  await startWorkflow(first, id);
  await put(first.objectStore, 'kept', 'bytes');
  const pids = [first.temporal.pid, first.objectStore.pid];
  await first.stop();
  await untilGone(pids);

  const second = await start('a');
  expect(await statusOf(second, id)).toBe('RUNNING');
  expect(await get(second.objectStore, 'kept')).toBe('bytes');
  expect(second.objectStore.secretKey).toBe(first.objectStore.secretKey);
});

test('two checkouts run side by side and do not see each other', async () => {
  const [a, b] = await Promise.all([start('a'), start('b')]);
  expect(a.temporal.address).not.toBe(b.temporal.address);
  expect(a.objectStore.port).not.toBe(b.objectStore.port);
  const id = randomUUID();
  await Promise.all([startWorkflow(a, id), put(a.objectStore, 'mine', 'a')]);
  await expect(statusOf(b, id)).rejects.toThrow(/not found/i);
  await expect(get(b.objectStore, 'mine')).rejects.toThrow(/does not exist/);
});

test('the servers of one state folder cannot be started twice', async () => {
  await start('a');
  await expect(start('a')).rejects.toMatchObject({
    boundary: 'infra',
    type: 'stack-running',
    message: expect.stringMatching(/train SPEC --state-dir .*a" uses them/) as string,
  });
});

test('a port that was asked for and is taken is an error, and nothing is left running', async () => {
  const other = createServer();
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  const { port } = other.address() as AddressInfo;
  await expect(start('a', { temporalPort: port })).rejects.toThrow(`Port ${port}`);
  await expect(start('a', { s3Port: port })).rejects.toThrow(/--s3-port/);
  await new Promise((resolve) => other.close(resolve));
  await start('a', { s3Port: port }); // the lock and the data are free again
});

test('runs are listed by the search attributes of Gradus with the Temporal CLI', async () => {
  const { temporal } = await start('a').then(async (stack) => {
    await startWorkflow(stack, 'run-1');
    return stack;
  });
  const query = `GradusRun = 'run-1' AND GradusMeanReward > 0.4`;
  const list = ['workflow', 'list', '--address', temporal.address, '--query', query, '--output', 'json'];
  // Visibility follows the start of a workflow by a moment.
  await vi.waitFor(
    async () => expect((await runCommand(temporal.cliPath!, list)).stdout).toContain('run-1'),
    120_000,
  );
});

test('the keys are for their owner only', async () => {
  await start('a');
  const { mode } = await stat(path.join(folder, 'a', 'object-store', 'keys.json'));
  expect(mode & 0o777).toBe(0o600);
});

test('a conditional put succeeds once, whoever races', async () => {
  const { objectStore } = await start('a');
  const client = s3(objectStore);
  const attempt = (body: string) =>
    client
      .makeRequestAsync(
        {
          method: 'PUT',
          bucketName: objectStore.bucket,
          objectName: 'once',
          headers: { 'If-None-Match': '*' },
        },
        body,
      )
      .then(
        () => 'won',
        () => 'lost',
      );
  const results = await Promise.all(Array.from({ length: 10 }, (_, i) => attempt(`body ${i}`)));
  expect(results.filter((result) => result === 'won')).toHaveLength(1);
});

test('the web interface answers at the address that is given', async () => {
  const stack = await start('a', { ui: true });
  const answer = await fetch(stack.temporal.uiAddress ?? 'http://absent');
  expect(answer.status).toBe(200);
  expect(await answer.text()).toMatch(/<html/i);
});

test("servers come up without Temporal's web interface and CLI, which are named", async () => {
  vi.stubEnv('GRADUS_TEMPORAL_SERVER', await requireBinary('temporal-server'));
  vi.stubEnv('GRADUS_VERSITYGW', await requireBinary('versitygw'));
  vi.stubEnv('GRADUS_CACHE', path.join(folder, 'cache'));
  vi.stubEnv('PATH', folder);
  try {
    const events: string[] = [];
    const stack = await start('a', { ui: true, onEvent: (text) => events.push(text) });
    expect(stack.temporal.uiAddress).toBeUndefined();
    expect(stack.temporal.cliPath).toBeUndefined();
    expect(events).toContain(
      'Temporal\'s web interface and CLI are not there: "npm run setup" builds what is missing',
    );
    const id = randomUUID();
    await startWorkflow(stack, id);
    expect(await statusOf(stack, id)).toBe('RUNNING');
  } finally {
    vi.unstubAllEnvs();
  }
});
