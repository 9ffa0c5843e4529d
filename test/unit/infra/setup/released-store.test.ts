import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { packTar } from 'modern-tar';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { runCommand } from '../../../../infra/setup/command.ts';
import { downloadObjectStore } from '../../../../infra/setup/released-store.ts';
import { cachedBinary, findBinary } from '../../../../infra/setup/server-binaries.ts';

const NAME = 'versitygw_v1.8.0_Here';
const URL = `/versity/versitygw/releases/download/v1.8.0/${NAME}.tar.gz`;

/** An archive as a release has it, of one file. */
async function archiveOf(file = `${NAME}/versitygw`): Promise<{ bytes: Buffer; sha256: string }> {
  const body = Buffer.from('#!/bin/sh\necho a gateway\n');
  const bytes = gzipSync(await packTar([{ header: { name: file, size: body.length, mode: 0o644 }, body }]));
  return { bytes, sha256: createHash('sha256').update(bytes).digest('hex') };
}

let folder: string;
let env: NodeJS.ProcessEnv;
let server: Server;
let host: string;
let served: Buffer | undefined;
let said: string[];
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'gradus-store-'));
  env = { GRADUS_CACHE: path.join(folder, 'cache'), PATH: '' };
  said = [];
  server = createServer((request, response) => {
    const there = request.url === URL && served !== undefined;
    response.statusCode = there || request.method === 'HEAD' ? 200 : 404;
    response.end(there ? served : '');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  host = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
});
afterEach(async () => {
  server.closeAllConnections();
  server.close();
  await rm(folder, { recursive: true });
});

const download = (sha256: string) =>
  downloadObjectStore((text) => void said.push(text), env, host, { name: NAME, sha256 });

test('a release with the digest that it must have is the object store from then on', async () => {
  const { bytes, sha256 } = await archiveOf();
  served = bytes;
  const target = cachedBinary('versitygw', env);
  expect(await download(sha256)).toEqual({ path: target, from: 'downloaded' });
  expect((await runCommand(target, [], { env: {} })).stdout).toBe('a gateway\n');
  expect(await findBinary('versitygw', env)).toEqual({ path: target, from: 'cache' });
});

test('nothing is kept of a release that has another digest, lacks the program or is not there', async () => {
  const right = await archiveOf();
  const empty = await archiveOf('elsewhere/versitygw');
  served = right.bytes;
  expect(await download('0'.repeat(64))).toBeUndefined();
  expect(said.at(-1)).toContain(`has SHA-256 ${right.sha256}, and ${'0'.repeat(64)} was expected`);
  served = empty.bytes;
  expect(await download(empty.sha256)).toBeUndefined();
  expect(said.at(-1)).toContain(`has no ${NAME}/versitygw`);
  served = undefined;
  expect(await download(right.sha256)).toBeUndefined();
  expect(said.at(-1)).toContain('answered 404');
  expect(existsSync(path.dirname(cachedBinary('versitygw', env)))).toBe(false);
});

test('a host that does not answer is said', async () => {
  server.closeAllConnections();
  server.close();
  expect(await download('0'.repeat(64))).toBeUndefined();
  expect(said.at(-1)).toMatch(/not downloaded, since http:.* does not answer/u);
});
