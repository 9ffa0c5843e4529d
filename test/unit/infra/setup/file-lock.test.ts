import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { isAlive, tryLock, withLock } from '../../../../infra/setup/file-lock.ts';
import { runCommand } from '../../../../infra/setup/command.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'gradus-lock-'));
});
afterEach(() => rm(folder, { recursive: true }));

async function pidOfTheDead(): Promise<number> {
  return Number((await runCommand(process.execPath, ['-p', 'process.pid'])).stdout);
}

test('a held lock says who holds it, and can be taken once released', async () => {
  const file = path.join(folder, 'lock');
  const first = await tryLock(file);
  expect(await tryLock(file)).toEqual({ heldBy: process.pid });
  if (!('release' in first)) throw new Error('the first should have it');
  await first.release();
  expect(await tryLock(file)).toHaveProperty('release');
});

test('the lock of a dead process is taken over', async () => {
  const file = path.join(folder, 'lock');
  await writeFile(file, `${await pidOfTheDead()} 12345`);
  expect(await tryLock(file)).toHaveProperty('release');
});

test.runIf(process.platform === 'linux')(
  'a pid that was given to another process does not hold the lock',
  async () => {
    const file = path.join(folder, 'lock');
    await writeFile(file, `${process.pid} 1`); // this pid, but a process of an earlier time
    expect(await tryLock(file)).toHaveProperty('release');
  },
);

test('work under the lock is done one at a time', async () => {
  const file = path.join(folder, 'lock');
  const events: string[] = [];
  const work = (name: string) =>
    withLock(
      file,
      () => undefined,
      async () => {
        events.push(`${name} in`);
        await new Promise((resolve) => setImmediate(resolve));
        events.push(`${name} out`);
      },
    );
  await Promise.all([work('a'), work('b')]);
  expect(events.map((event) => event.slice(2))).toEqual(['in', 'out', 'in', 'out']);
});

test('life and death of a process are told apart', async () => {
  expect(isAlive(process.pid)).toBe(true);
  expect(isAlive(await pidOfTheDead())).toBe(false);
});
