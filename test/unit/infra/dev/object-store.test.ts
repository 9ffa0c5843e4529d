import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { removeOrphanedUploads } from '../../../../infra/dev/object-store.ts';

let objects: string;
beforeEach(async () => {
  objects = await mkdtemp(path.join(tmpdir(), 'gradus-objects-'));
});
afterEach(() => rm(objects, { recursive: true }));

async function upload(name: string, touched: Date): Promise<string> {
  const folder = path.join(objects, 'gradus', '.sgwtmp', 'multipart', 'object', name);
  await mkdir(folder, { recursive: true });
  await writeFile(path.join(folder, '1'), 'part');
  for (const file of [path.join(folder, '1'), folder]) await utimes(file, touched, touched);
  return folder;
}

test('parts that nobody goes on with are removed; objects and living uploads stay', async () => {
  const abandoned = await upload('abandoned', new Date(Date.now() - 2 * 3600_000));
  const living = await upload('living', new Date());
  const object = path.join(objects, 'gradus', 'checkpoint');
  await writeFile(object, 'bytes');
  expect(await removeOrphanedUploads(objects)).toBe(1);
  expect([abandoned, living, object].map((file) => existsSync(file))).toEqual([false, true, true]);
});

test('a store that holds nothing yet has nothing to remove', async () => {
  expect(await removeOrphanedUploads(path.join(objects, 'absent'))).toBe(0);
});
