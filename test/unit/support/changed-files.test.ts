import { execFileSync } from 'node:child_process';
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { changedFiles } from '../../changed-files.ts';

let root: string;
const git = (...args: string[]): string =>
  execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b.c', ...args], {
    cwd: root,
    encoding: 'utf8',
  });
const put = (name: string, text: string): Promise<void> => writeFile(path.join(root, name), text);

beforeEach(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'gradus-changed-'));
  git('init', '--quiet', '--initial-branch', 'main');
  await put('a.ts', 'export const a = 1;');
  await put('gone.ts', '');
  await put('old.ts', 'export const old = 1;\n'.repeat(9));
  await put('.gitignore', 'ignored.ts\n');
  git('add', '.');
  git('commit', '--quiet', '--message', 'first');
});
afterEach(() => rm(root, { recursive: true }));

test('what has changed is found under its own name, whatever is in it', async () => {
  const odd = ['with space.ts', 'größer.ts', 'quo"te.ts', '-dash.ts'];
  for (const name of odd) await put(name, '');
  git('checkout', '--quiet', '-b', 'branch');
  git('add', 'größer.ts');
  git('commit', '--quiet', '--message', 'second');
  await rename(path.join(root, 'old.ts'), path.join(root, 'new.ts'));
  await rm(path.join(root, 'gone.ts'));
  await put('ignored.ts', '');
  expect(changedFiles(root).toSorted()).toEqual([...odd, 'new.ts'].toSorted());
});

test('a detached head has left main where its commit did, and a branch without main has its last commit', async () => {
  git('checkout', '--quiet', '--detach');
  await put('a.ts', 'export const a = 2;');
  git('commit', '--quiet', '--all', '--message', 'second');
  expect(changedFiles(root)).toEqual(['a.ts']);
  expect(changedFiles(root, 'HEAD')).toEqual([]);
  git('branch', '--quiet', '--delete', '--force', 'main');
  expect(changedFiles(root)).toEqual([]);
});

test('a name that is no commit is refused, and none is taken for an option of git', async () => {
  expect(() => changedFiles(root, 'nosuch')).toThrow('there is no commit "nosuch" here');
  expect(() => changedFiles(root, '--output=written')).toThrow('there is no commit "--output=written"');
  expect(changedFiles(root)).toEqual([]);
});
