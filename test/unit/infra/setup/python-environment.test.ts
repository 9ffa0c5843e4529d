import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { runCommand } from '../../../../infra/setup/command.ts';
import { findPythonEnvironment, pythonEnvironmentFolder } from '../../../../infra/python-environment.ts';
import { ensurePythonEnvironment } from '../../../../infra/setup/python-environment.ts';

// A virtual environment with its pip takes minutes where others need the processors, too.
vi.setConfig({ testTimeout: 600_000, hookTimeout: 60_000 });

const CHEMISTRY = path.resolve(
  import.meta.dirname,
  '../../../../plugins/molecules/chemistry/requirements.txt',
);

let scratch: string;
let requirements: string;
const lines: string[] = [];
const say = (text: string) => void lines.push(text);

beforeEach(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), 'gradus-python-'));
  requirements = path.join(scratch, 'requirements.txt');
  await writeFile(requirements, '# nothing is needed\n');
  vi.stubEnv('GRADUS_CACHE', path.join(scratch, 'cache'));
  lines.length = 0;
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(scratch, { recursive: true });
});

test('an environment is made once, also when two ask at once, and found again', async () => {
  expect(await findPythonEnvironment('test', requirements)).toBeUndefined();
  const [one, other] = await Promise.all(
    [1, 2].map(() => ensurePythonEnvironment('test', requirements, say)),
  );
  expect(one).toEqual(other);
  expect(lines.filter((text) => text.startsWith('making'))).toHaveLength(1);
  const { stdout } = await runCommand(one!.python, ['-c', 'import sys; print(sys.prefix)']);
  expect(stdout.trim()).toBe(one!.folder);
  expect(await findPythonEnvironment('test', requirements)).toEqual(one);
  await writeFile(requirements, '# other requirements, another environment\n');
  expect(await findPythonEnvironment('test', requirements)).toBeUndefined();
});

test('one that was cut off is made anew', async () => {
  const folder = await pythonEnvironmentFolder('test', requirements);
  await mkdir(folder, { recursive: true });
  await writeFile(path.join(folder, 'rubbish'), '');
  await ensurePythonEnvironment('test', requirements, say);
  expect(existsSync(path.join(folder, 'rubbish'))).toBe(false);
});

test('packages that cannot be installed are refused with the last words of pip, and nothing is left as ready', async () => {
  await writeFile(requirements, './no-such-package\n');
  await expect(ensurePythonEnvironment('test', requirements, say)).rejects.toMatchObject({
    type: 'python-packages',
    message: expect.stringContaining('no-such-package') as string,
  });
  expect(await findPythonEnvironment('test', requirements)).toBeUndefined();
});

test('what pip does is said while it does it', async () => {
  await writeFile(requirements, 'six==1.17.0\n');
  await ensurePythonEnvironment('test', requirements, say);
  expect(lines).toContain('test: package 1 of 1: six==1.17.0');
  expect(lines).toContain('test: unpacking 1 packages');
});

test('without Python it says what is needed', async () => {
  vi.stubEnv('PATH', '/nowhere');
  await expect(ensurePythonEnvironment('test', requirements, say)).rejects.toMatchObject({
    type: 'python-missing',
    message: expect.stringContaining('Python 3.10') as string,
  });
});

test('the chemistry packages are pinned to versions and to the digests of their wheels', async () => {
  const text = await readFile(CHEMISTRY, 'utf8');
  const packages = text
    .replaceAll('\\\n', '')
    .split('\n')
    .filter((line) => /^[a-z]/.test(line));
  expect(packages.length).toBeGreaterThan(10);
  for (const line of packages) expect(line).toMatch(/^[\w-]+==[\w.]+( +--hash=sha256:[0-9a-f]{64})+$/);
});

test('a package that is not what was pinned is refused', async () => {
  await writeFile(requirements, `six==1.17.0 --hash=sha256:${'0'.repeat(64)}\n`);
  await expect(ensurePythonEnvironment('test', requirements, say)).rejects.toThrow(/DO NOT MATCH THE HASHES/);
});
