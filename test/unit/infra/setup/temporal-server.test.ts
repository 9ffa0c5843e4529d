import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { recordDigests } from '../../../../infra/setup/recorded-digests.ts';
import { cachedBinary } from '../../../../infra/setup/server-binaries.ts';
import {
  begunWith,
  databaseOf,
  downloadTemporalCli,
  findCli,
  findTemporals,
  requireTemporal,
  serverOfCli,
} from '../../../../infra/setup/temporal-server.ts';
import { archiveOf, serveRelease } from '../../../support/releases.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'gradus-temporal-'));
});
afterEach(() => rm(folder, { recursive: true }));

async function executable(file: string, body: string): Promise<string> {
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(file, `#!/bin/sh\n${body}\n`);
  await chmod(file, 0o755);
  return file;
}

const machine = () => ({ GRADUS_CACHE: path.join(folder, 'cache'), PATH: path.join(folder, 'bin') });
const cli = (file: string, server: string): Promise<string> =>
  executable(file, `echo "temporal version 1.5.1 (Server ${server}, UI 2.42.1)"`);
const onPath = (server: string): Promise<string> => cli(path.join(folder, 'bin', 'temporal'), server);
async function built(): Promise<string> {
  const file = await executable(cachedBinary('temporal-server', machine()), 'echo temporal version 1.32.1');
  await recordDigests(path.dirname(file));
  return file;
}

test('a Temporal CLI is told from a server by what it prints', () => {
  expect(serverOfCli('temporal version 1.5.1 (Server 1.29.1, UI 2.42.1)')).toBe('1.29.1');
  expect(serverOfCli('temporal version 0.0.0-DEV (Server 1.29.1, UI 2.42.1)')).toBe('1.29.1');
  expect(serverOfCli('temporal version 1.32.1')).toBeUndefined();
});

test('a temporal on PATH serves where none was built, if it is new enough', async () => {
  await onPath('1.28.9');
  expect(await findTemporals(machine())).toEqual([]);
  const file = await onPath('1.29.1');
  expect(await findTemporals(machine())).toEqual([{ kind: 'cli', path: file, from: 'path' }]);
  expect(await findCli({ kind: 'cli', path: file, from: 'path' }, machine())).toBe(file);
});

test('the server that was built goes before the one on PATH, and what the environment names before all', async () => {
  await onPath('1.30.0');
  const server = await built();
  expect(await requireTemporal(undefined, machine())).toEqual({
    kind: 'server',
    path: server,
    from: 'cache',
  });
  const own = await cli(path.join(folder, 'own'), '1.29.1');
  const env = { ...machine(), GRADUS_TEMPORAL_SERVER: own };
  expect(await findTemporals(env)).toEqual([{ kind: 'cli', path: own, from: 'override' }]);
  await cli(own, '1.20.0');
  await expect(findTemporals(env)).rejects.toThrow(/server 1\.20\.0: 1\.29 or newer is needed/);
});

test('the data of one kind of server is not given to the other', async () => {
  const file = await onPath('1.29.1');
  await writeFile(databaseOf(folder, 'server'), '');
  expect(begunWith(folder)).toBe('server');
  await expect(requireTemporal('server', machine())).rejects.toThrow(/which .*temporal does not read/);
  await built();
  expect(await requireTemporal('server', machine())).toMatchObject({ kind: 'server' });
  expect(await requireTemporal('cli', machine())).toEqual({ kind: 'cli', path: file, from: 'path' });
});

test('a machine with nothing is told what to do', async () => {
  await expect(requireTemporal(undefined, machine())).rejects.toThrow(
    /npm run setup.*GRADUS_TEMPORAL_SERVER/,
  );
});

test('a release of the CLI serves from then on if it has the digest that it must have, and nothing is kept of another', async () => {
  const name = 'temporal_cli_1.5.1_here';
  const releases = await serveRelease(`/temporalio/cli/releases/download/v1.5.1/${name}.tar.gz`);
  try {
    const { bytes, sha256 } = await archiveOf('temporal', '#!/bin/sh\n');
    releases.serve(bytes);
    const lines: string[] = [];
    const download = (digest: string) =>
      downloadTemporalCli((text) => lines.push(text), machine(), releases.host, { name, sha256: digest });
    expect(await download('0'.repeat(64))).toBeUndefined();
    expect(lines.at(-1)).toContain(`has SHA-256 ${sha256}, and ${'0'.repeat(64)} was expected`);
    expect(await findTemporals(machine())).toEqual([]);
    const downloaded = (await download(sha256))!;
    expect(await findTemporals(machine())).toEqual([downloaded]);
    await writeFile(downloaded.path, 'damage');
    expect(await findTemporals(machine())).toEqual([]);
  } finally {
    releases.close();
  }
});
