import { existsSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { writeProject } from '../../../../cli/commands/init.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'gradus-init-'));
});
afterEach(() => rm(folder, { recursive: true }));

test.each(['environment.ts', 'package.json'])(
  'nothing is written through a %s that is a link to nowhere',
  async (name) => {
    const elsewhere = path.join(folder, 'elsewhere');
    await symlink(elsewhere, path.join(folder, name));
    await expect(writeProject(folder, 'mine')).rejects.toMatchObject({
      type: 'exists',
      message: expect.stringContaining(`${name} is there already`) as string,
    });
    expect(existsSync(elsewhere)).toBe(false);
    expect(await readdir(folder)).toEqual([name]);
  },
);

test('a dotfile that is a link to nowhere is left as it is', async () => {
  const elsewhere = path.join(folder, 'elsewhere');
  await symlink(elsewhere, path.join(folder, '.npmrc'));
  expect(await writeProject(folder, 'mine')).not.toContain('.npmrc');
  expect(existsSync(elsewhere)).toBe(false);
});

test('what a package.json says already stays, and the environment comes to those that it lists', async () => {
  const file = path.join(folder, 'package.json');
  await writeFile(
    file,
    JSON.stringify({ name: 'theirs', gradus: { environments: ['./other.ts'] }, scripts: { test: 'true' } }),
  );
  await writeProject(folder, 'mine');
  expect(JSON.parse(await readFile(file, 'utf8'))).toMatchObject({
    name: 'theirs',
    type: 'module',
    gradus: { environments: ['./other.ts', './environment.ts'] },
    scripts: { test: 'true' },
  });
});
