import { fork } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { WorkerMessage } from '../../../workers/loop-watch.ts';
import { SupervisedProcess } from '../../../workers/supervised-process.ts';
import type { ProcessKind } from '../../../workers/supervised-process.ts';
import { until } from '../../support/run-client.ts';

/** Gives signs of life as workers do. */
const SCRIPT = `
process.send({ descriptions: ['a worker'] });
setInterval(() => process.send({ alive: { running: ['advance of run/x'], longestBlock: { busyMs: 7, wallMs: 9 } } }), 200);
process.send({ began: { id: 1, name: 'advance of run/x', token: 'AQ==' } });
process.send({ began: { id: 2, name: 'trainStep of run/x', token: 'Ag==' } });
process.send({ ended: 1 });
process.on('disconnect', () => process.exit());
`;

let folder: string;
let supervised: SupervisedProcess;
let events: string[];
let lost: { tokens: string[]; why: string }[];

const kind = (script: string): ProcessKind => ({
  title: 'the worker',
  spawn: () => fork(script, [], { execArgv: [] }),
  whenReady: (child, ready, failed) =>
    child.on('message', (message) => {
      const { descriptions, failed: why } = message as { descriptions?: string[]; failed?: string };
      if (descriptions) ready(descriptions);
      if (why) failed(why);
    }),
  onMessage: (child, heard) => child.on('message', (message) => heard(message as WorkerMessage)),
});

beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'gradus-supervised-'));
  const script = path.join(folder, 'worker.mjs');
  await writeFile(script, SCRIPT);
  events = [];
  lost = [];
  supervised = new SupervisedProcess(kind(script), {
    onEvent: (text) => events.push(text),
    hungAfterSeconds: 4,
    onLost: async (attempts, why) => void lost.push({ tokens: attempts.map(({ token }) => token), why }),
  });
  await supervised.up();
});

afterEach(async () => {
  await supervised.stop();
  await rm(folder, { recursive: true });
});

const replaced = (pid: number | undefined) =>
  until(
    async () => (supervised.pid !== undefined && supervised.pid !== pid ? true : undefined),
    20_000,
    () => `the process was not replaced; ${events.join('; ')}`,
  );

test('a process that is stopped for good is killed and replaced, and what it did is said', async () => {
  const { pid } = supervised;
  // Once it has said what it does.
  await until(
    async () => (supervised.longestBlock.busyMs === 7 ? true : undefined),
    10_000,
    () => 'no sign of life',
  );
  process.kill(pid!, 'SIGSTOP');
  await replaced(pid);
  expect(events.join('\n')).toContain('no sign of life for 4 s, last while it ran advance of run/x');
});

test('what a process had under way when it was killed is reported once, by its task token', async () => {
  // Messages come in their order: with a sign of life all that was said at the start has been heard.
  await until(
    async () => (supervised.longestBlock.busyMs === 7 ? true : undefined),
    10_000,
    () => 'no sign of life',
  );
  const { pid } = supervised;
  process.kill(pid!, 'SIGKILL');
  await replaced(pid);
  expect(lost).toEqual([{ tokens: ['Ag=='], why: 'the worker died (SIGKILL)' }]);
});

test('a process that was stopped for less goes on', async () => {
  const { pid } = supervised;
  process.kill(pid!, 'SIGSTOP');
  await delay(2500);
  process.kill(pid!, 'SIGCONT');
  await delay(3000);
  expect(supervised.pid).toBe(pid);
  expect(events).toEqual([]);
});

test('a process that dies is started again', async () => {
  const { pid } = supervised;
  process.kill(pid!, 'SIGKILL');
  await replaced(pid);
  expect(events).toContain('the worker died (SIGKILL); starting it again');
});

test('a process that cannot begin says why, and where its log is', async () => {
  const script = path.join(folder, 'broken.mjs');
  await writeFile(
    script,
    `process.send({ failed: 'Cannot load the environment module mine.ts' }, () => process.exit(1));`,
  );
  const logFile = path.join(folder, 'workers.log');
  const broken = new SupervisedProcess(kind(script), { logFile });
  await expect(broken.up()).rejects.toThrow(
    `the worker ended before it was ready (exit 1): Cannot load the environment module mine.ts\nIts log is ${logFile}`,
  );
  await broken.stop();
});
