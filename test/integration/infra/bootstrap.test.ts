import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { runCommand } from '../../../infra/setup/command.ts';
import { isAlive } from '../../../infra/setup/file-lock.ts';

const root = path.resolve(import.meta.dirname, '..', '..', '..');
const bootstrap = path.join(root, 'infra', 'setup', 'bootstrap.mjs');

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'gradus-bootstrap-'));
});
afterEach(() => rm(folder, { recursive: true }));

async function program(body: string): Promise<string> {
  const file = path.join(folder, 'program.ts');
  await writeFile(file, body);
  return file;
}

async function startProgram(body: string) {
  const child = spawn(process.execPath, [bootstrap, '--run', await program(body), '--'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
  return { child, pid: Number(line) };
}

test('a program gets its arguments, and its exit code is passed on', async () => {
  const file = await program('console.log(JSON.stringify(process.argv.slice(2))); process.exitCode = 7;');
  const result = await runCommand(process.execPath, [bootstrap, '--run', file, '--', 'a', '--json']);
  expect(result.code).toBe(7);
  expect(result.stdout).toBe('["a","--json"]\n'); // stdout is the program's own
});

test('a program that cannot be bundled runs from its sources, and says so', async () => {
  const file = await program('console.log("it", ("runs" as string));');
  const name = file.replace(/\.ts$/, '').replaceAll('/', '-');
  const cache = path.join(root, 'node_modules', '.cache', 'gradus', name);
  await mkdir(path.dirname(cache), { recursive: true });
  await writeFile(cache, 'where the folder should be');
  try {
    const result = await runCommand(process.execPath, [bootstrap, '--bundle', file, '--']);
    expect(result).toMatchObject({ code: 0, stdout: 'it runs\n' });
    expect(result.stderr).toContain('runs from its sources');
  } finally {
    await rm(cache);
  }
});

test('SIGTERM reaches the program, which ends in its own way', async () => {
  const { child } = await startProgram(
    `process.on('SIGTERM', () => process.exit(5)); setInterval(() => undefined, 1e6); console.log(process.pid);`,
  );
  child.kill('SIGTERM');
  expect(await once(child, 'exit')).toEqual([5, null]);
});

test('kill -9 leaves no program behind', async () => {
  const { child, pid } = await startProgram(`setInterval(() => undefined, 1e6); console.log(process.pid);`);
  child.kill('SIGKILL');
  await vi.waitFor(() => expect(isAlive(pid)).toBe(false), { timeout: 120_000 });
});

test('a machine without Go and without cached servers is told so before anything is spent', async () => {
  const env = {
    PATH: folder,
    HOME: process.env['HOME'],
    GRADUS_CACHE: path.join(folder, 'cache'),
  };
  const setup = path.join(root, 'cli', 'setup', 'setup.ts');
  const result = await runCommand(process.execPath, ['--import', 'tsx', setup], { env, cwd: root });
  expect(result.code).toBe(1);
  expect(result.stderr).toMatch(/no Go on PATH.*install Go/);
  expect(result.stderr).toContain('GRADUS_TEMPORAL_SERVER');
});

test('a variable that the set-up does not obey, such as the one that dev prints, starts no set-up', async () => {
  const file = await program('');
  const args = [bootstrap, '--run', file, '--'];
  await runCommand(process.execPath, args);
  const env = {
    ...process.env,
    GRADUS_STATE_DIR: folder,
    GRADUS_ENVIRONMENTS: 'my-environment.ts',
    GRADUS_HOST_ENV: 'JUDGE_URL',
  };
  expect(await runCommand(process.execPath, args, { env })).toMatchObject({ code: 0, stderr: '' });
});

test('a wrong call shows how to call it', async () => {
  const result = await runCommand(process.execPath, [bootstrap, '--runn', 'x.ts']);
  expect(result.code).toBe(1);
  expect(result.stderr).toContain('usage: ');
});
