import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { buildBinaries, installsOf, requireGo } from '../../../../infra/setup/go-build.ts';
import {
  BINARIES,
  cachedBinary,
  findBinary,
  SERVERS,
  TEMPORAL_TOOLS,
} from '../../../../infra/setup/server-binaries.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'gradus-go-'));
});
afterEach(() => rm(folder, { recursive: true }));

const machine = () => ({
  GRADUS_CACHE: path.join(folder, 'cache'),
  PATH: `${path.join(folder, 'bin')}:${process.env['PATH']}`,
});
const nothing = () => ({ ...machine(), PATH: path.join(folder, 'bin') });

/** A program called `go`, for what Go itself does not do on demand: fail, and be killed. */
async function fakeGo(body: string): Promise<string> {
  const file = path.join(folder, 'bin', 'go');
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(file, `#!/bin/sh\necho "$PWD: $*" >> ${folder}/calls\n${body}\n`);
  await chmod(file, 0o755);
  return file;
}

const BUILDS = `case "$1" in
  install) for name in server versitygw temporal; do printf '#!/bin/sh\\n' > "$GOBIN/$name"; done;;
esac`;

test('a machine without Go is told what to install or which variables to set', async () => {
  const asked = requireGo(SERVERS, nothing());
  await expect(asked).rejects.toMatchObject({ boundary: 'infra', type: 'toolchain-missing' });
  await expect(asked).rejects.toThrow(/install Go 1\.26\.8 or newer/);
  for (const name of SERVERS) await expect(asked).rejects.toThrow(BINARIES[name].override);
});

test('a Go that is too old is refused before anything is built', async () => {
  await fakeGo('echo go1.22.1');
  await expect(requireGo(['versitygw'], nothing())).rejects.toThrow(/go1\.22\.1.*install Go 1\.25\.0/);
});

test('the two servers are one build, and what a run does not need is none of it', async () => {
  expect(installsOf(SERVERS)).toMatchObject([{ names: SERVERS, module: expect.stringMatching('servers') }]);
  expect(installsOf(['versitygw'])).toEqual([{ names: ['versitygw'] }]);
  expect(installsOf([...SERVERS, ...TEMPORAL_TOOLS]).map(({ names }) => names)).toEqual([
    SERVERS,
    ['temporal-ui'],
    ['temporal-cli'],
  ]);
});

test('the module of the servers has the versions that the cache names', async () => {
  const module = await readFile(path.join(import.meta.dirname, '../../../../infra/servers/go.mod'), 'utf8');
  for (const name of SERVERS) {
    const { package: source, version, go } = BINARIES[name];
    expect(module).toContain(`\t${source}\n`);
    expect(module).toContain(`${source.replace(/\/cmd\/.*/, '')} ${version}`);
    expect(module.match(/^go (.*)$/m)![1]! >= go).toBe(true);
  }
});

test('what was built is in the cache, and is not built again', async () => {
  const go = await fakeGo(BUILDS);
  const built = await buildBinaries(SERVERS, go, () => undefined, machine());
  expect(built).toEqual(SERVERS.map((name) => ({ path: cachedBinary(name, machine()), from: 'built' })));
  for (const name of SERVERS) expect(await findBinary(name, machine())).toMatchObject({ from: 'cache' });
  const again = await buildBinaries(SERVERS, go, () => undefined, machine());
  expect(again.map(({ from }) => from)).toEqual(['cache', 'cache']);
  const calls = await readFile(path.join(folder, 'calls'), 'utf8');
  expect(calls.match(/: install/g)).toHaveLength(1);
});

test('a build that fails leaves nothing that would be used, and says why', async () => {
  const go = await fakeGo(`${BUILDS}\n[ "$1" = install ] && { echo no space left >&2; exit 1; } || true`);
  const building = buildBinaries(SERVERS, go, () => undefined, machine());
  await expect(building).rejects.toThrow(/no space left[^]*run the command again/);
  for (const name of SERVERS) expect(await findBinary(name, machine())).toBeUndefined();
});

test('what a killed build left half-written is not used', async () => {
  const half = path.join(folder, 'cache', 'go-build-killed');
  await mkdir(half, { recursive: true });
  for (const name of ['server', 'versitygw']) await writeFile(path.join(half, name), 'half', { mode: 0o755 });
  for (const name of SERVERS) expect(await findBinary(name, machine())).toBeUndefined();
  await buildBinaries(SERVERS, await fakeGo(BUILDS), () => undefined, machine());
  expect(await readFile(cachedBinary('versitygw', machine()), 'utf8')).toBe('#!/bin/sh\n');
  expect((await readdir(path.join(folder, 'cache'))).filter((name) => name.startsWith('go-build'))).toEqual(
    [],
  );
});
