import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { workflowBundle } from '../../../workers/workflow-bundle.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'gradus-bundle-'));
});
afterAll(() => rm(folder, { recursive: true }));

test('the script of the workflows is made once, and those of other sources are let go of', async () => {
  await writeFile(path.join(folder, 'of-yesterday.js'), '');
  const code = await workflowBundle(folder);
  expect(code).toContain('rolloutGroup');
  const [kept, ...others] = await readdir(folder);
  expect(others).toEqual([]);
  expect(await readFile(path.join(folder, kept!), 'utf8')).toBe(code);
  // What lies there is what is given.
  await writeFile(path.join(folder, kept!), '// kept');
  expect(await workflowBundle(folder)).toBe('// kept');
});
