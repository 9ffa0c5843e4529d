import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { LONG_UNITS } from './selection.ts';
import { changedFiles } from './changed-files.ts';

// `npm run quick`: types, lint and format of everything, and the unit tests of what has changed since the branch left
// main, committed or not; `npm run quick -- COMMIT` since that commit. Tests are taken by how many imports lie between them and what changed, the nearest first, as
// many as a minute has room for; what is left out is said.

const MOST_FILES = 16;
const root = path.resolve(import.meta.dirname, '..');

const git = (...args: string[]): string[] =>
  execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
    .split('\0')
    .filter((line) => line !== '');

/** Which modules import which, by what follows `from` or stands in `import()`, types included. */
async function importers(): Promise<Map<string, string[]>> {
  const modules = git(
    'ls-files',
    '-z',
    '--cached',
    '--others',
    '--exclude-standard',
    '*.ts',
    '*.tsx',
    '*.mjs',
  );
  const found = new Map<string, string[]>();
  for (const module of modules) {
    if (!existsSync(path.join(root, module))) continue;
    const text = readFileSync(path.join(root, module), 'utf8');
    for (const [, imported] of text.matchAll(/(?:from|import\(?)\s*'(\.{1,2}\/[^']+)'/g)) {
      const target = path.join(path.dirname(module), imported!);
      found.set(target, [...(found.get(target) ?? []), module]);
    }
  }
  return found;
}

/** Test files of test/unit, those with the fewest imports between them and what changed first. */
async function nearestTests(changed: readonly string[]): Promise<string[]> {
  const imported = await importers();
  const seen = new Set(changed);
  // A set goes on to what is added to it meanwhile.
  for (const module of seen) for (const importer of imported.get(module) ?? []) seen.add(importer);
  const long = new Set(LONG_UNITS.flatMap(({ paths }) => paths.map((one) => `test/unit/${one}`)));
  const tests = [...seen].filter((file) => file.startsWith('test/unit/') && file.endsWith('.test.ts'));
  // Documents and examples are read, not imported.
  const read = changed.some((file) => /\.md$|^examples\//.test(file));
  const docs = read
    ? (await readdir(path.join(root, 'test/unit/docs'))).map((file) => `test/unit/docs/${file}`)
    : [];
  return [...new Set([...docs.filter((file) => file.endsWith('.test.ts')), ...tests])].filter(
    (file) => changed.includes(file) || !long.has(file),
  );
}

async function command(name: string, args: string[]): Promise<boolean> {
  const child = spawn(path.join(root, 'node_modules', '.bin', name), args, { cwd: root, stdio: 'inherit' });
  const [code] = (await once(child, 'exit')) as [number | null];
  return code === 0;
}

const started = performance.now();
const [named, ...more] = process.argv.slice(2);
if (more.length > 0)
  throw new Error(`it takes one commit, and was given ${process.argv.length - 2} arguments`);
const changed = changedFiles(root, named);
const tests = await nearestTests(changed);
const run = tests.slice(0, MOST_FILES);
const workflows = changed.some((file) => /^(workflows|core)\//.test(file));
console.log(`${changed.length} changed files, ${tests.length} files of unit tests reach them`);
const checks = await Promise.all([
  command('tsc', ['--noEmit']),
  command('tsc', ['-p', 'dashboard/browser']),
  command('oxlint', ['--type-aware']),
  command('prettier', ['--check', '--cache', '--cache-strategy', 'content', '--log-level', 'warn', '.']),
]);
const tested = [
  run.length === 0 || (await command('vitest', ['run', '--project', 'unit*', ...run])),
  !workflows || (await command('vitest', ['run', '--project', 'replay'])),
];
if (tests.length > run.length)
  console.log(`${tests.length - run.length} files of tests further away were left out: npm test runs them`);
console.log(`${((performance.now() - started) / 1000).toFixed(0)} s`);
process.exitCode = [...checks, ...tested].every(Boolean) ? 0 : 1;
