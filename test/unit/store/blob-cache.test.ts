import { mkdtemp, readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { BlobCache } from '../../../store/objects/blob-cache.ts';
import { sha256Hex } from '../../../store/digest.ts';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'gradus-cache-'));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

const blob = (content: string, length = 100) => {
  const bytes = new TextEncoder().encode(content.padEnd(length, '.'));
  return { bytes, sha256: sha256Hex(bytes) };
};
const pathOf = (sha256: string) => join(directory, sha256.slice(0, 2), sha256);

/** As if it was used so many seconds ago. */
async function age(sha256: string, seconds: number): Promise<void> {
  const then = new Date(Date.now() - seconds * 1000);
  await utimes(pathOf(sha256), then, then);
}

test('what one process writes another reads; nothing half-written is left', async () => {
  const { bytes, sha256 } = blob('a');
  await new BlobCache(directory, 1000).write(sha256, [bytes]);
  expect(await new BlobCache(directory, 1000).read(sha256)).toEqual(Buffer.from(bytes));
  expect(await readdir(join(directory, 'incoming'))).toEqual([]);
  expect(await new BlobCache(directory, 1000).read('0'.repeat(64))).toBeUndefined();
});

test('a damaged file is thrown away', async () => {
  const { bytes, sha256 } = blob('a');
  const cache = new BlobCache(directory, 1000);
  await cache.write(sha256, [bytes]);
  await writeFile(pathOf(sha256), (await readFile(pathOf(sha256))).subarray(1));
  expect(await cache.read(sha256)).toBeUndefined();
  expect(await readdir(join(directory, sha256.slice(0, 2)))).toEqual([]);
});

test('the least recently used go when the bound is passed, and reading counts as use', async () => {
  const cache = new BlobCache(directory, 350);
  const [a, b, c, d] = ['a', 'b', 'c', 'd'].map((content) => blob(content));
  for (const [i, { sha256, bytes }] of [a!, b!, c!].entries()) {
    await cache.write(sha256, [bytes]);
    await age(sha256, 100 - i);
  }
  await cache.read(a!.sha256);
  await cache.write(d!.sha256, [d!.bytes]);
  expect(await cache.read(b!.sha256)).toBeUndefined();
  for (const { sha256 } of [a!, c!, d!]) expect(await cache.read(sha256)).toBeDefined();
});

test('what is larger than the bound is not kept, and does not drive out the rest', async () => {
  const cache = new BlobCache(directory, 350);
  const [small, large] = [blob('a'), blob('b', 351)];
  await cache.write(small.sha256, [small.bytes]);
  await cache.write(large.sha256, [large.bytes]);
  expect(await cache.read(large.sha256)).toBeUndefined();
  expect(await cache.read(small.sha256)).toBeDefined();
});

test('many writers of the same and of other content do not disturb each other', async () => {
  const caches = [1, 2, 3].map(() => new BlobCache(directory, 500));
  const blobs = Array.from({ length: 30 }, (_, i) => blob(`blob ${i % 10}`));
  await Promise.all(blobs.map(({ sha256, bytes }, i) => caches[i % 3]!.write(sha256, [bytes])));
  const found = await Promise.all(blobs.map(({ sha256 }) => caches[0]!.read(sha256)));
  found.forEach((bytes, i) => bytes && expect(bytes).toEqual(Buffer.from(blobs[i]!.bytes)));
});

test.each(['', '../../beside', 'A'.repeat(64), '0'.repeat(63)])(
  'what is no digest (%j) names no file',
  async (sha256) => {
    const cache = new BlobCache(join(directory, 'cache'), 1000);
    const beside = join(directory, 'beside');
    await writeFile(beside, 'not ours');
    const refused = { boundary: 'store', type: 'invalid-digest', retryable: false };
    await expect(cache.read(sha256)).rejects.toMatchObject(refused);
    await expect(cache.write(sha256, [new Uint8Array(1)])).rejects.toMatchObject(refused);
    expect(await readFile(beside, 'utf8')).toBe('not ours');
  },
);
