import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { runCommand } from '../../../../infra/setup/command.ts';
import { CUDA_WHEELS } from '../../../../infra/setup/cuda-libraries.ts';
import { WHEELS as ONNX_WHEELS } from '../../../../infra/setup/onnxruntime-cuda.ts';
import { wheelFor } from '../../../../infra/setup/tensorflow-native.ts';
import { takeFromWheels, wheelPlatforms } from '../../../../infra/setup/wheel.ts';
import type { PinnedWheel } from '../../../../infra/setup/wheel.ts';

let scratch: string;
let sha256: string;

/** A folder takes the place of the Python package index: it has one wheel, with one library. */
beforeEach(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), 'gradus-wheel-'));
  const files = {
    'nvidia/toy/lib/libtoy.so.1': 'a library',
    'toy_cu12-1.0.dist-info/METADATA': 'Metadata-Version: 2.1\nName: toy-cu12\nVersion: 1.0\n',
    'toy_cu12-1.0.dist-info/WHEEL': 'Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n',
    'toy_cu12-1.0.dist-info/RECORD': '',
  };
  const index = path.join(scratch, 'index');
  for (const [name, text] of Object.entries(files)) {
    await mkdir(path.dirname(path.join(index, name)), { recursive: true });
    await writeFile(path.join(index, name), text);
  }
  const wheel = path.join(index, 'toy_cu12-1.0-py3-none-any.whl');
  const { code } = await runCommand(
    'python3',
    ['-m', 'zipfile', '-c', wheel, 'nvidia', 'toy_cu12-1.0.dist-info'],
    { cwd: index },
  );
  expect(code).toBe(0);
  sha256 = createHash('sha256')
    .update(await readFile(wheel))
    .digest('hex');
  vi.stubEnv('PIP_NO_INDEX', '1');
  vi.stubEnv('PIP_FIND_LINKS', index);
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(scratch, { recursive: true });
});

const take = (...digests: PinnedWheel['sha256']): Promise<void> =>
  takeFromWheels('python3', [{ project: 'toy-cu12', version: '1.0', sha256: digests }], scratch, (file) =>
    file.endsWith('.so.1') ? path.join(scratch, 'taken', path.basename(file)) : undefined,
  );

test('of a wheel that has the digest of one of its processors, the wanted files are taken', async () => {
  await take('0'.repeat(64), sha256);
  expect(await readFile(path.join(scratch, 'taken', 'libtoy.so.1'), 'utf8')).toBe('a library');
  expect((await readdir(scratch)).toSorted()).toEqual(['index', 'taken']);
});

test('a wheel with another digest is refused, and nothing of it is taken', async () => {
  await expect(take('0'.repeat(64))).rejects.toThrow(/toy-cu12 1\.0:[^]*DO NOT MATCH THE HASHES/);
  expect(existsSync(path.join(scratch, 'taken'))).toBe(false);
});

test('every wheel that the set-up takes has one version, and a digest of each wheel that may be taken', () => {
  const tensorFlow = (['x64', 'arm64'] as const).flatMap((arch) => [
    wheelFor('tfjs-node', arch),
    wheelFor('tfjs-node-gpu', arch),
  ]);
  for (const { version, sha256: digests } of [...tensorFlow, ...CUDA_WHEELS, ...ONNX_WHEELS]) {
    expect(version).toMatch(/^\d+(\.\d+)+$/);
    for (const digest of digests) expect(digest).toMatch(/^[0-9a-f]{64}$/);
  }
  // One each for x64 and arm64.
  for (const { sha256: digests } of CUDA_WHEELS) expect(digests).toHaveLength(2);
});

test('a processor gets the wheels for it', () => {
  expect(wheelPlatforms('arm64').every((tag) => tag.endsWith('aarch64'))).toBe(true);
  expect(wheelPlatforms('x64').every((tag) => tag.endsWith('x86_64'))).toBe(true);
});
