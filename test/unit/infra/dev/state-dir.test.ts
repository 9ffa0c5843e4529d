import { mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readStack } from '../../../../infra/dev/stack-addresses.ts';
import { prepareStateDir, readRecord, writeRecord } from '../../../../infra/dev/state-dir.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'gradus-state-'));
});
afterEach(() => rm(folder, { recursive: true }));

test('a state folder that cannot be made is refused with its name', async () => {
  const file = path.join(folder, 'file');
  await writeFile(file, '');
  const asked = prepareStateDir(path.join(file, 'state'));
  await expect(asked).rejects.toMatchObject({ boundary: 'infra', type: 'state-dir' });
  await expect(asked).rejects.toThrow(file);
});

test('a disk without room is refused, saying how much is needed', async () => {
  const asked = prepareStateDir(folder, Number.MAX_SAFE_INTEGER);
  await expect(asked).rejects.toMatchObject({ boundary: 'infra', type: 'disk-full' });
  await expect(asked).rejects.toThrow(/MB left .* MB are needed/);
});

test('what was recorded is read back; a damaged record says what to do', async () => {
  expect(await readRecord(folder)).toEqual({});
  const record = { objectStore: { endPoint: '127.0.0.1', port: 9000, bucket: 'gradus' } };
  await writeRecord(folder, record);
  expect(await readRecord(folder)).toEqual(record);
  await writeFile(path.join(folder, 'stack.json'), '{"temporal":');
  await expect(readRecord(folder)).rejects.toThrow(/Delete it/);
});

test("what is in a state folder is its owner's alone, also where it had been open", async () => {
  const state = path.join(folder, 'state');
  await mkdir(path.join(state, 'object-store'), { recursive: true, mode: 0o777 });
  await prepareStateDir(state, 0);
  for (const one of ['temporal', 'object-store', 'logs', 'blob-cache']) {
    expect((await stat(path.join(state, one))).mode & 0o777).toBe(0o700);
  }
  const fresh = path.join(folder, 'fresh');
  await prepareStateDir(fresh, 0);
  expect((await stat(fresh)).mode & 0o777).toBe(0o700);
});

test('a tool without a stack is told to start one', async () => {
  await expect(readStack(folder)).rejects.toThrow(/npm run dev/);
});
