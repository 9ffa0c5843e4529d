import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import getPort from 'get-port';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { TYPESCRIPT } from '../../../engine/own-module.ts';
import { settingsFor } from '../../../cli/stack-with-workers.ts';
import { startStack } from '../../../infra/dev/stack.ts';
import type { Stack } from '../../../infra/dev/stack.ts';
import { settingsToEnv } from '../../../workers/settings.ts';

// What a person sees who starts a worker where something is missing.

const ROOT = path.join(import.meta.dirname, '../../..');

let stateDir: string;
let stack: Stack;
beforeAll(async () => {
  stateDir = await mkdtemp(path.join(tmpdir(), 'gradus-worker-start-'));
  const s3Port = await getPort({ host: '127.0.0.1' });
  stack = await startStack(stateDir, { ui: false, s3Port });
});
afterAll(async () => {
  await stack?.stop();
  await rm(stateDir, { recursive: true, force: true });
});

const settings = (): Record<string, string> => settingsToEnv(settingsFor(stack));

/** Runs a tool worker until it is ready, or has ended. */
async function startWorker(
  env: Record<string, string>,
  log: 'pipe' | number = 'pipe',
): Promise<{ ready: boolean; code: number; said: string; told: string | undefined }> {
  const worker = spawn(process.execPath, ['--import', TYPESCRIPT, 'workers/main.ts', 'tool'], {
    cwd: ROOT,
    env: { PATH: process.env['PATH'], HOME: process.env['HOME'], ...env },
    stdio: ['ignore', log, log, 'ipc'],
  });
  let output = '';
  for (const stream of [worker.stdout, worker.stderr]) stream?.on('data', (text) => (output += String(text)));
  let ready = false;
  let told: string | undefined;
  worker.on('message', (message: { descriptions?: string[]; failed?: string }) => {
    told ??= message.failed;
    if (!message.descriptions) return;
    ready = true;
    worker.kill('SIGTERM');
  });
  const [code] = (await once(worker, 'close')) as [number];
  return { ready, code, said: output, told };
}

test('without settings it names each variable that it misses', async () => {
  const { code, said } = await startWorker({});
  expect(code).toBe(1);
  for (const variable of ['GRADUS_S3_URL', 'GRADUS_S3_ACCESS_KEY', 'GRADUS_S3_SECRET_KEY']) {
    expect(said).toContain(`${variable}: is not set`);
  }
  expect(said).not.toContain('    at ');
});

test.skipIf(process.platform !== 'linux')('it starts and works where its log is on a full disk', async () => {
  const full = openSync('/dev/full', 'a');
  try {
    expect(await startWorker(settings(), full)).toMatchObject({ ready: true, code: 0 });
  } finally {
    closeSync(full);
  }
});

test('without a Temporal server it says where it looked and what to do', async () => {
  const address = `127.0.0.1:${await getPort({ host: '127.0.0.1' })}`;
  const { code, said } = await startWorker({ ...settings(), TEMPORAL_ADDRESS: address });
  expect(code).toBe(1);
  expect(said).toContain(`no Temporal server answers at ${address}`);
  expect(said).toContain('npm run dev');
  expect(said).not.toContain('    at ');
});

test('without an object store it says so; with it, it starts', async () => {
  stack.objectStore.kill();
  const down = await startWorker(settings());
  expect(down).toMatchObject({ ready: false, code: 1 });
  expect(down.said).toMatch(
    new RegExp(`object store at http://127.0.0.1:${stack.objectStore.port}, .*ECONNREFUSED`),
  );
  expect(down.said).toContain('npm run dev');
  expect(down.said).not.toContain('    at ');

  await stack.objectStore.restart();
  expect(await startWorker(settings())).toMatchObject({ ready: true, code: 0 });
});

test('with the keys of another store it says which to correct', async () => {
  const { code, said } = await startWorker({ ...settings(), GRADUS_S3_SECRET_KEY: 'wrong' });
  expect(code).toBe(1);
  expect(said).toContain('Correct the access key and secret key');
});

test('with an environment module that is not there it names the module, to the one who started it as well', async () => {
  const { code, said, told } = await startWorker({
    ...settings(),
    GRADUS_ENVIRONMENTS: 'no/such/environment.ts',
  });
  expect(code).toBe(1);
  expect(said).toContain('Cannot load the environment module no/such/environment.ts');
  expect(told).toContain('Cannot load the environment module no/such/environment.ts');
});
