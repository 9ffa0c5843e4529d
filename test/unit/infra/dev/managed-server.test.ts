import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ManagedServer } from '../../../../infra/dev/managed-server.ts';
import { until } from '../../../support/run-client.ts';

let folder: string;
let broken: string;
let server: ManagedServer;
let events: string[];

/** Serves, which it says by a file, unless it is broken: then it ends at once. */
const SCRIPT = `
const fs = require('node:fs');
if (fs.existsSync(process.argv[1])) process.exit(1);
fs.writeFileSync(process.argv[2], String(process.pid));
setInterval(() => undefined, 1000);
`;

beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'gradus-managed-'));
  broken = path.join(folder, 'broken');
  const serves = path.join(folder, 'serves');
  events = [];
  server = await ManagedServer.start(
    {
      title: 'the server',
      command: process.execPath,
      args: ['-e', SCRIPT, broken, serves],
      logFile: path.join(folder, 'log'),
      probe: async () => {
        if (!existsSync(serves)) throw new Error('not yet');
        await rm(serves);
      },
    },
    { supervise: true, onEvent: (text) => events.push(text) },
  );
});

afterEach(async () => {
  await server.stop();
  await rm(folder, { recursive: true });
});

const seen = (what: string, times = 1) =>
  until(
    async () => (events.filter((text) => text.includes(what)).length >= times ? true : undefined),
    120_000,
    () => `"${what}" was not said ${times} time(s): ${events.join('; ')}`,
  );

test('a server that cannot be brought back is tried again until it can', async () => {
  await writeFile(broken, '');
  process.kill(server.pid, 'SIGKILL');
  await seen('the server cannot be started; it is tried again', 3);
  await rm(broken);
  await seen('the server is back');
  expect(() => process.kill(server.pid, 0)).not.toThrow();
});

test('a server that keeps ending is brought back however often', async () => {
  for (let times = 1; times <= 6; times++) {
    process.kill(server.pid, 'SIGKILL');
    await seen('the server is back', times);
  }
});

test('a server that nobody wants any more is not brought back', async () => {
  await writeFile(broken, '');
  process.kill(server.pid, 'SIGKILL');
  await seen('the server cannot be started');
  await server.stop();
  const reported = events.length;
  await rm(broken);
  await new Promise((resolve) => setTimeout(resolve, 1500));
  expect(events.slice(reported)).toEqual([]);
});
