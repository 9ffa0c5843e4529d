import { fork } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { WorkerMessage } from '../../../workers/loop-watch.ts';
import { SupervisedProcess } from '../../../workers/supervised-process.ts';
import type { ProcessKind } from '../../../workers/supervised-process.ts';
import { until } from '../../support/run-client.ts';

/** Gives signs of life as workers do, each with a longer block. */
const SCRIPT = `
process.send({ descriptions: ['a worker'] });
let busyMs = 0;
setInterval(() => process.send({ alive: { running: ['advance of run/x'], longestBlock: { busyMs: ++busyMs, wallMs: 9 } } }), 50);
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
  // The seconds in which a process is silent go by when a test says so, however long the machine keeps it waiting. (Not by
  // `expect.poll`, which has them go by as it waits.)
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
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
  vi.useRealTimers();
  await supervised.stop();
  await rm(folder, { recursive: true });
});

const replaced = (pid: number | undefined, second = 0) =>
  until(
    async () => {
      vi.advanceTimersByTime(1000 * second);
      return supervised.pid !== undefined && supervised.pid !== pid ? true : undefined;
    },
    120_000,
    () => `the process was not replaced; ${events.join('; ')}`,
  );
/** A sign of life that is not heard yet. */
async function nextSign(): Promise<void> {
  const { busyMs } = supervised.longestBlock;
  await until(
    async () => supervised.longestBlock.busyMs > busyMs || undefined,
    120_000,
    () => 'no sign of life',
  );
}

test('a process that is stopped for good is killed and replaced, and what it did is said', async () => {
  const { pid } = supervised;
  // Once it has said what it does.
  await nextSign();
  process.kill(pid!, 'SIGSTOP');
  await replaced(pid, 1);
  expect(events.join('\n')).toContain('no sign of life for 4 s, last while it ran advance of run/x');
});

test('what a process had under way when it was killed is reported once, by its task token', async () => {
  // Messages come in their order: with a sign of life all that was said at the start has been heard.
  await nextSign();
  const { pid } = supervised;
  process.kill(pid!, 'SIGKILL');
  await replaced(pid);
  // All that it had said is waited for, and another process is not.
  await until(
    async () => lost.length > 0 || undefined,
    120_000,
    () => 'it was not reported',
  );
  expect(lost).toEqual([{ tokens: ['Ag=='], why: 'the worker died (SIGKILL)' }]);
});

test('a process that was stopped for less goes on', async () => {
  const { pid } = supervised;
  process.kill(pid!, 'SIGSTOP');
  vi.advanceTimersByTime(3000);
  process.kill(pid!, 'SIGCONT');
  await nextSign();
  vi.advanceTimersByTime(3000);
  await nextSign();
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

test('a process that never says that it is ready is killed, whoever waits is told, and another one is tried in its place', async () => {
  const script = path.join(folder, 'silent.mjs');
  const starts = path.join(folder, 'starts');
  // The first time it is ready, so that what follows is a start again.
  await writeFile(
    script,
    `import { appendFileSync, readFileSync } from 'node:fs';
    appendFileSync(${JSON.stringify(starts)}, process.pid + '\\n');
    const nth = readFileSync(${JSON.stringify(starts)}, 'utf8').trim().split('\\n').length;
    if (nth !== 1 && nth !== 3) setInterval(() => undefined, 1000);
    else process.send({ descriptions: ['a worker'] });
    process.on('disconnect', () => process.exit());`,
  );
  const begun = async () => (await readFile(starts, 'utf8')).trim().split('\n').length;
  const said: string[] = [];
  const silent = new SupervisedProcess(kind(script), {
    readyWithinSeconds: 70,
    onEvent: (text) => said.push(text),
  });
  await silent.up();
  process.kill(silent.pid!, 'SIGKILL');
  await until(
    async () => (await begun()) === 2 || undefined,
    120_000,
    () => 'it was not started again',
  );
  const waiting = silent.up();
  vi.advanceTimersByTime(69_000);
  expect(said.at(-1)).toBe('the worker is not ready after 60 s; it has 70 s');
  vi.advanceTimersByTime(1000);
  await waiting;
  expect(said.at(-1)).toBe('the worker was not ready within 70 s and was killed');
  expect(await begun()).toBe(3);
  await silent.stop();
});

test('what a worker said before it ended may be read after that, and keeps nobody waiting', async () => {
  const [starts, script] = [path.join(folder, 'starts'), path.join(folder, 'late.mjs')];
  // The second one ends at once, and the third is never ready.
  await writeFile(
    script,
    `import { appendFileSync, readFileSync } from 'node:fs';
    appendFileSync(${JSON.stringify(starts)}, process.pid + '\\n');
    const nth = readFileSync(${JSON.stringify(starts)}, 'utf8').trim().split('\\n').length;
    if (nth === 1) process.send({ descriptions: ['a worker'] });
    if (nth === 2) process.exit(1);
    setInterval(() => undefined, 1000);
    process.on('disconnect', () => process.exit());`,
  );
  let begun = 0;
  const late = new SupervisedProcess(
    {
      ...kind(script),
      spawn: () => {
        begun++;
        return fork(script, [], { execArgv: [] });
      },
      whenReady: (child, ready) =>
        begun === 2
          ? child.once('exit', () => setImmediate(() => ready(['a worker'])))
          : child.on('message', () => ready(['a worker'])),
    },
    {},
  );
  await late.up();
  process.kill(late.pid!, 'SIGKILL');
  await until(
    async () => begun === 3 || undefined,
    60_000,
    () => 'it was not started again',
  );
  await late.stop();
});
