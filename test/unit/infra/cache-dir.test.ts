import { arch, platform } from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import { cacheEntry, cacheRoot } from '../../../infra/cache-dir.ts';

test('the cache is where GRADUS_CACHE says, as an absolute path', () => {
  expect(cacheRoot({ GRADUS_CACHE: 'some/place' })).toBe(path.resolve('some/place'));
});

test('without a setting the cache is a folder of its own outside the checkout', () => {
  const root = cacheRoot({});
  expect(path.basename(root).toLowerCase()).toContain('gradus');
  expect(root.startsWith(process.cwd())).toBe(false);
});

test('versions, variants and platforms do not share a folder', () => {
  const base = { name: 'thing', version: 'v1.2.3' };
  const entries = [base, { ...base, version: 'v1.2.4' }, { ...base, variant: 'napi8' }].map((key) =>
    cacheEntry('/cache', key),
  );
  expect(new Set(entries).size).toBe(3);
  for (const entry of entries) expect(entry.endsWith(`-${platform()}-${arch()}`)).toBe(true);
});

test('a name cannot leave the cache', () => {
  expect(path.dirname(cacheEntry('/cache', { name: '../../etc', version: '1/2' }))).toBe('/cache');
});
