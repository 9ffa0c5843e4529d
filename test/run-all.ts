import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { z } from 'zod';
import { TESTS_DAY } from './order-of-the-day.ts';
import { PROMISES } from './selection.ts';
import { LEFT_OUT_FILE, TESTS_UNTIL } from './until-runner.ts';

// `npm test`, and with `--all` `npm run test:all`: the checks at once, then unit, replay and integration tests one after
// another. `npm test` stops at the first part that fails. The last line is `N passed, N failed`: one for each check, and one for each
// test. Where TESTS_UNTIL is set, integration tests are begun until then, those of promises first: others are left out, by name.
// Their order follows from the day of the commit, so that it is not always the same ones that are left out.

interface Tally {
  passed: number;
  failed: number;
}

const strangers = process.argv.slice(2).filter((one) => one !== '--all');
if (strangers.length > 0) {
  console.error(
    `npm test runs all of its selection and takes no ${strangers.join(' ')}: "npm run unit -- PATH" and "npm run integration -- PATH" run single files`,
  );
  process.exit(2);
}
const all = process.argv.includes('--all');
const root = path.resolve(import.meta.dirname, '..');
const { [TESTS_UNTIL]: until, ...inherited } = process.env;
const env = { ...inherited, [all ? 'GRADUS_ALL_TESTS' : 'GRADUS_SELECTED_TESTS']: '1' };

async function command(name: string, args: string[], more: Record<string, string> = {}): Promise<boolean> {
  const child = spawn(path.join(root, 'node_modules', '.bin', name), args, {
    cwd: root,
    env: { ...env, ...more },
    stdio: 'inherit',
  });
  const [code] = (await once(child, 'exit')) as [number | null];
  return code === 0;
}

const vitestReport = z.object({
  numPassedTests: z.int(),
  numFailedTests: z.int(),
  success: z.boolean(),
  testResults: z.array(
    z.object({
      name: z.string(),
      status: z.string(),
      message: z.string(),
      assertionResults: z.array(
        z.object({ fullName: z.string(), status: z.string(), failureMessages: z.array(z.string()) }),
      ),
    }),
  ),
});

/** What failed, by file and name, and why: it is printed last, where nobody has to look for it. */
const failures: string[] = [];
/** Lines of a test's message that are printed there. */
const MESSAGE_LINES = 6;

const withReason = (what: string, message: string): string =>
  [what, ...stripVTControlCharacters(message).trim().split('\n').slice(0, MESSAGE_LINES)].join('\n    ');

/** Vitest projects, those whose names match, with more arguments; a file whose tests cannot be begun counts as one failure. */
async function tests(
  project: string,
  folder: string,
  args: string[] = [],
  more: Record<string, string> = {},
): Promise<Tally> {
  const before = failures.length;
  const report = path.join(folder, 'report.json');
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
  const clean = await command('vitest', ['run', '--project', project, ...reporters, ...args], more);
  const { numPassedTests, numFailedTests, testResults } = vitestReport.parse(
    JSON.parse(await readFile(report, 'utf8')),
  );
  for (const { name, status, message, assertionResults } of testResults) {
    const failed = assertionResults.filter((one) => one.status === 'failed');
    const file = path.relative(root, name);
    failures.push(
      ...failed.map(({ fullName, failureMessages }) =>
        withReason(`${file}: ${fullName}`, failureMessages.join('\n')),
      ),
    );
    if (failed.length === 0 && status === 'failed')
      failures.push(withReason(`${file}: could not be prepared`, message));
  }
  if (!clean && failures.length === before)
    failures.push(`${project}: Vitest was not content with what happened outside of its tests; see above`);
  return { passed: numPassedTests, failed: clean ? 0 : Math.max(1, numFailedTests) };
}

async function check(name: string, args: string[]): Promise<Tally> {
  const ok = await command(name, args);
  if (!ok) failures.push([name, ...args].join(' '));
  return { passed: ok ? 1 : 0, failed: ok ? 0 : 1 };
}

/** At once: each of them leaves a core free for some of its time. */
async function checks(): Promise<Tally> {
  const tallies = await Promise.all([
    check('tsc', ['--noEmit']),
    check('tsc', ['-p', 'dashboard/browser']),
    check('oxlint', ['--type-aware']),
    check('prettier', ['--check', '--cache', '--cache-strategy', 'content', '--log-level', 'warn', '.']),
  ]);
  const sum = (of: keyof Tally) => tallies.reduce((total, one) => total + one[of], 0);
  return { passed: sum('passed'), failed: sum('failed') };
}

const promises = PROMISES.flatMap(({ paths }) => paths.map((one) => `test/integration/${one}`));
const noPromise = promises.map((one) => `--exclude=${one.endsWith('.ts') ? one : `${one}/**`}`);

/** The day of the commit; none where this is no clone of a repository. */
function dayOfCommit(): Record<string, string> {
  const { stdout, status } = spawnSync('git', ['log', '-1', '--format=%cs'], { cwd: root, encoding: 'utf8' });
  return status === 0 ? { [TESTS_DAY]: stdout.trim() } : {};
}

const folder = await mkdtemp(path.join(tmpdir(), 'gradus-test-'));
const leftOut = path.join(folder, 'left-out');
const inTime = { ...(until !== undefined && { [TESTS_UNTIL]: until }), [LEFT_OUT_FILE]: leftOut };
const steps: [string, () => Promise<Tally>][] = [
  ['types, lint and format', checks],
  ['unit', () => tests('unit*', folder)],
  ['replay', () => tests('replay', folder)],
  ['integration: promises', () => tests('integration', folder, promises, inTime)],
];
if (all)
  steps.push([
    'integration: the rest',
    () => tests('integration', folder, noPromise, { ...inTime, ...dayOfCommit() }),
  ]);
let late: string[] = [];
const sum: Tally = { passed: 0, failed: 0 };
try {
  for (const [name, run] of steps) {
    console.log(`\n— ${name}`);
    const started = Date.now();
    const { passed, failed } = await run();
    sum.passed += passed;
    sum.failed += failed;
    console.log(
      `${name}: ${passed} passed, ${failed} failed, ${((Date.now() - started) / 1000).toFixed(0)} s`,
    );
    if (failed > 0 && !all) break;
  }
  if (existsSync(leftOut)) late = (await readFile(leftOut, 'utf8')).trim().split('\n');
} finally {
  await rm(folder, { recursive: true, force: true });
}
if (late.length > 0)
  console.log(`${late.length} files left out, for they could not be begun in time: ${late.join(', ')}`);
for (const one of failures) console.log(`failed: ${one}`);
process.exitCode = sum.failed === 0 ? 0 : 1;
console.log(`\n${sum.passed} passed, ${sum.failed} failed`);
