import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  cachedBinary,
  findBinary,
  parseCliVersion,
  requireBinary,
} from '../../../../infra/setup/server-binaries.ts';
import { recordDigests } from '../../../../infra/setup/recorded-digests.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'gradus-binaries-'));
});
afterEach(() => rm(folder, { recursive: true }));

async function executable(file: string, body: string): Promise<string> {
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(file, `#!/bin/sh\n${body}\n`);
  await chmod(file, 0o755);
  return file;
}

const emptyMachine = () => ({ GRADUS_CACHE: path.join(folder, 'cache'), PATH: path.join(folder, 'bin') });

test('a missing server says which command brings it', async () => {
  await expect(requireBinary('temporal-server', emptyMachine())).rejects.toThrow(/npm run setup/);
});

test('the environment wins over the cache, and a wrong setting is an error', async () => {
  const env = emptyMachine();
  const cached = await executable(cachedBinary('versitygw', env), 'true');
  await recordDigests(path.dirname(cached));
  expect(await findBinary('versitygw', env)).toEqual({ path: cached, from: 'cache' });
  const own = await executable(path.join(folder, 'own'), 'true');
  expect(await findBinary('versitygw', { ...env, GRADUS_VERSITYGW: own })).toEqual({
    path: own,
    from: 'override',
  });
  const wrong = { ...env, GRADUS_VERSITYGW: path.join(folder, 'absent') };
  await expect(findBinary('versitygw', wrong)).rejects.toMatchObject({ type: 'binary-missing' });
});

test('a cached server that is not what was built is none, nor one of which nothing was written down', async () => {
  const env = emptyMachine();
  const cached = await executable(cachedBinary('versitygw', env), 'true');
  expect(await findBinary('versitygw', env)).toBeUndefined();
  await recordDigests(path.dirname(cached));
  expect(await findBinary('versitygw', env)).toEqual({ path: cached, from: 'cache' });
  await executable(cached, 'false');
  expect(await findBinary('versitygw', env)).toBeUndefined();
  await expect(requireBinary('versitygw', env)).rejects.toThrow(/not whole any more\. Run "npm run setup"/);
});

test('a Temporal CLI on PATH is used from version 1.1 on', async () => {
  const env = emptyMachine();
  const file = path.join(folder, 'bin', 'temporal');
  await executable(file, 'echo "temporal version 1.0.0 (Server 1.24.0)"');
  expect(await findBinary('temporal-cli', env)).toBeUndefined();
  await executable(file, 'echo "temporal version 1.10.2 (Server 1.30.0)"');
  expect(await findBinary('temporal-cli', env)).toEqual({ path: file, from: 'path' });
});

test('only the Temporal CLI prints a version that counts', () => {
  expect(parseCliVersion('temporal version 1.5.1 (Server 1.29.1, UI 2.42.1)')).toBe('1.5.1');
  expect(parseCliVersion('time is temporal')).toBeUndefined();
});
