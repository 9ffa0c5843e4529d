import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { z } from 'zod';

// `npm test`: types, lint, unit, replay, integration, in that order, stopping at the first that fails. The last line
// is `N passed, N failed`: one for each check, and one for each test.

interface Tally {
  passed: number;
  failed: number;
}

const root = path.resolve(import.meta.dirname, '..');

async function command(name: string, args: string[]): Promise<boolean> {
  const child = spawn(path.join(root, 'node_modules', '.bin', name), args, { cwd: root, stdio: 'inherit' });
  const [code] = (await once(child, 'exit')) as [number | null];
  return code === 0;
}

const vitestReport = z.object({ numPassedTests: z.int(), numFailedTests: z.int(), success: z.boolean() });

/** A vitest project; a file that cannot even be loaded counts as one failure. */
async function project(name: string, folder: string): Promise<Tally> {
  const report = path.join(folder, `${name}.json`);
  const clean = await command('vitest', [
    'run',
    '--project',
    name,
    '--reporter=default',
    '--reporter=json',
    `--outputFile.json=${report}`,
  ]);
  const { numPassedTests, numFailedTests } = vitestReport.parse(JSON.parse(await readFile(report, 'utf8')));
  return { passed: numPassedTests, failed: clean ? 0 : Math.max(1, numFailedTests) };
}

async function check(name: string, args: string[]): Promise<Tally> {
  const ok = await command(name, args);
  return { passed: ok ? 1 : 0, failed: ok ? 0 : 1 };
}

const folder = await mkdtemp(path.join(tmpdir(), 'gradus-test-'));
const steps: [string, () => Promise<Tally>][] = [
  ['types', () => check('tsc', ['--noEmit'])],
  ['types in browsers', () => check('tsc', ['-p', 'dashboard/browser'])],
  ['lint', () => check('oxlint', ['--type-aware'])],
  ['format', () => check('prettier', ['--check', '--log-level', 'warn', '.'])],
  ['unit', () => project('unit', folder)],
  ['replay', () => project('replay', folder)],
  ['integration', () => project('integration', folder)],
];
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
    if (failed > 0) break;
  }
} finally {
  await rm(folder, { recursive: true, force: true });
}
process.exitCode = sum.failed === 0 ? 0 : 1;
console.log(`\n${sum.passed} passed, ${sum.failed} failed`);
