import { cp, mkdir, mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { runCommand } from '../../../../infra/setup/command.ts';

const MAKER = path.resolve(import.meta.dirname, '../../../../infra/setup/bundle.mjs');
const PROGRAM = `
  const text: string = (await import('./part.ts')).text;
  console.log(text, import.meta.dirname, import.meta.url);
`;

let folder: string;
let root: string;
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'gradus-bundle-'));
  root = path.join(folder, 'checkout');
  await mkdir(path.join(root, 'cli'), { recursive: true });
  for (const name of ['package.json', 'package-lock.json', 'tsconfig.json']) await put(name, '{}');
  await put('cli/program.ts', PROGRAM);
  await put('cli/part.ts', `export const text: string = 'first';`);
});
afterEach(() => rm(folder, { recursive: true }));

const put = (name: string, text: string): Promise<void> => writeFile(path.join(root, name), text);

/** The file that a process of its own makes or finds, as at each start of a command. */
async function bundle(of: string = root): Promise<string> {
  const script = `import { bundle } from ${JSON.stringify(pathToFileURL(MAKER).href)};
    console.log(await bundle(${JSON.stringify(of)}, 'cli/program.ts'));`;
  return printed(['--input-type=module', '--eval', script]);
}

async function printed(args: string[]): Promise<string> {
  const { code, stdout, stderr } = await runCommand(process.execPath, args);
  if (code !== 0) throw new Error(stderr);
  return stdout.trim();
}

const run = async (of?: string): Promise<string> => printed([await bundle(of)]);

test('a bundle does what the sources do, and looks for files where they lie', async () => {
  const at = path.join(root, 'cli');
  expect(await run()).toBe(`first ${at} ${pathToFileURL(path.join(at, 'program.ts')).href}`);
});

test('unchanged sources are not compiled again', async () => {
  const made = await stat(await bundle());
  expect((await stat(await bundle())).ino).toBe(made.ino);
});

test('a source that changed is never run as it was, its time and length being the same', async () => {
  await run();
  const { atime, mtime } = await stat(path.join(root, 'cli/part.ts'));
  await put('cli/part.ts', `export const text: string = 'other';`);
  await utimes(path.join(root, 'cli/part.ts'), atime, mtime);
  expect(await run()).toMatch(/^other /);
});

test('a file that is no TypeScript is a source like others', async () => {
  await put('cli/part.ts', `import { text as of } from './text.json'; export const text: string = of;`);
  await put('cli/text.json', '{"text":"before"}');
  expect(await run()).toMatch(/^before /);
  await put('cli/text.json', '{"text":"after"}');
  expect(await run()).toMatch(/^after /);
});

test('what no longer belongs to a bundle is deleted', async () => {
  const old = await readdir(path.dirname(await bundle()));
  await put('cli/part.ts', `export const text: string = 'other';`);
  expect(await readdir(path.dirname(await bundle()))).toHaveLength(old.length);
});

test('a bundle that lacks a file is made anew', async () => {
  const folder = path.dirname(await bundle());
  const files = await readdir(folder);
  for (const file of files.filter((name) => name.endsWith('.mjs'))) {
    await rm(path.join(folder, file));
    expect(await run()).toMatch(/^first /);
  }
});

test('other packages and another place make another bundle', async () => {
  const first = await bundle();
  const record = path.join(path.dirname(first), 'made-of.json');
  const { key } = JSON.parse(await readFile(record, 'utf8')) as { key: string };
  await put('package-lock.json', '{"lockfileVersion":3}');
  await bundle();
  expect(JSON.parse(await readFile(record, 'utf8'))).not.toMatchObject({ key });

  const copy = path.join(folder, 'copy');
  await cp(root, copy, { recursive: true });
  expect(await run(copy)).toContain(` ${copy}/cli `);
});

test('two that start at once both find a whole bundle', async () => {
  const [a, b, c] = await Promise.all([run(), run(), run()]);
  expect([b, c]).toEqual([a, a]);
  expect(a).toMatch(/^first /);
});

test('a mistake in a source is said, and leaves no bundle that does not fit', async () => {
  await run();
  await put('cli/part.ts', `export const text: string = ;`);
  await expect(bundle()).rejects.toThrow('part.ts:1');
});
