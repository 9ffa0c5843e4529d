import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { runCommand } from '../../../infra/setup/command.ts';
import { ROOT } from '../../support/markdown.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'gradus-bin-'));
  await cp(path.join(ROOT, 'bin'), path.join(folder, 'bin'), { recursive: true });
});
afterEach(() => rm(folder, { recursive: true }));

const gradus = () => runCommand(process.execPath, [path.join(folder, 'bin', 'gradus.mjs'), 'check']);

test('a package that was packed without being compiled says what to do', async () => {
  const { code, stderr } = await gradus();
  expect([code, stderr]).toEqual([1, expect.stringContaining('npm run package')]);
});

test('the command is what was compiled, with its arguments', async () => {
  await mkdir(path.join(folder, 'dist', 'cli'), { recursive: true });
  await writeFile(path.join(folder, 'package.json'), '{"type":"module"}');
  await writeFile(path.join(folder, 'dist', 'cli', 'gradus.js'), 'console.log(process.argv[2])');
  expect(await gradus()).toMatchObject({ code: 0, stdout: 'check\n' });
});
