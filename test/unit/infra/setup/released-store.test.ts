import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { runCommand } from '../../../../infra/setup/command.ts';
import { downloadObjectStore } from '../../../../infra/setup/released-store.ts';
import { cachedBinary, findBinary } from '../../../../infra/setup/server-binaries.ts';
import { archiveOf, serveRelease } from '../../../support/releases.ts';

const NAME = 'versitygw_v1.8.0_Here';
const PROGRAM = '#!/bin/sh\necho a gateway\n';

let folder: string;
let env: NodeJS.ProcessEnv;
let releases: Awaited<ReturnType<typeof serveRelease>>;
let lines: string[];
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'gradus-store-'));
  env = { GRADUS_CACHE: path.join(folder, 'cache'), PATH: '' };
  lines = [];
  releases = await serveRelease(`/versity/versitygw/releases/download/v1.8.0/${NAME}.tar.gz`);
});
afterEach(async () => {
  releases.close();
  await rm(folder, { recursive: true });
});

const download = (sha256: string) =>
  downloadObjectStore((text) => void lines.push(text), env, releases.host, { name: NAME, sha256 });

test('a release with the digest that it must have is the object store from then on', async () => {
  const { bytes, sha256 } = await archiveOf(`${NAME}/versitygw`, PROGRAM);
  releases.serve(bytes);
  const target = cachedBinary('versitygw', env);
  expect(await download(sha256)).toEqual({ path: target, from: 'downloaded' });
  expect((await runCommand(target, [], { env: {} })).stdout).toBe('a gateway\n');
  expect(await findBinary('versitygw', env)).toEqual({ path: target, from: 'cache' });
});

test('several set-ups at once find it there, and nothing is left of one that was killed', async () => {
  const { bytes, sha256 } = await archiveOf(`${NAME}/versitygw`, PROGRAM);
  releases.serve(bytes);
  const root = env['GRADUS_CACHE']!;
  await mkdir(path.join(root, 'download-versitygw'), { recursive: true });
  await writeFile(path.join(root, 'download-versitygw', 'half'), 'an archive');
  const target = cachedBinary('versitygw', env);
  const found = await Promise.all(Array.from({ length: 6 }, () => download(sha256)));
  expect(found).toEqual(found.map(() => ({ path: target, from: 'downloaded' })));
  expect(await readdir(root)).toEqual([path.basename(path.dirname(target))]);
});

test('nothing is kept of a release that has another digest, lacks the program or is not there', async () => {
  const right = await archiveOf(`${NAME}/versitygw`, PROGRAM);
  const empty = await archiveOf('elsewhere/versitygw', PROGRAM);
  releases.serve(right.bytes);
  expect(await download('0'.repeat(64))).toBeUndefined();
  expect(lines.at(-1)).toContain(`has SHA-256 ${right.sha256}, and ${'0'.repeat(64)} was expected`);
  releases.serve(empty.bytes);
  expect(await download(empty.sha256)).toBeUndefined();
  expect(lines.at(-1)).toContain(`has no ${NAME}/versitygw`);
  releases.serve();
  expect(await download(right.sha256)).toBeUndefined();
  expect(lines.at(-1)).toContain('answered 404');
  expect(existsSync(path.dirname(cachedBinary('versitygw', env)))).toBe(false);
});

test('a host that does not answer is said', async () => {
  releases.close();
  expect(await download('0'.repeat(64))).toBeUndefined();
  expect(lines.at(-1)).toMatch(/not downloaded, since http:.* does not answer/u);
});
