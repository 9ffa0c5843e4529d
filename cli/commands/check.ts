import { existsSync } from 'node:fs';
import path from 'node:path';
import { Command } from 'commander';
import { counted } from '../../core/counted.ts';
import { GradusError } from '../../core/errors.ts';
import { checkEnvironments } from '../../environments/check/check.ts';
import type { CheckReport, CheckedEnvironment } from '../../environments/check/check.ts';
import { note, print } from '../printable.ts';
import { projectModules } from '../project.ts';
import { wholeFrom } from '../numbers.ts';
import { fileOfModule, READY } from '../../environments/host/ready.ts';
import { didYouMean } from '../../core/did-you-mean.ts';
import { untilInterrupted } from '../until-interrupted.ts';
import { printJson } from '../json/print-json.ts';

interface CheckOptions {
  environment?: string[];
  tasks: number;
  seconds: number;
  performOnce?: boolean;
  json?: boolean;
}

/** `gradus check [FILE…]`: exit code 1 where there is an error, or something was not looked at. */
export function checkEnvironmentCommand(): Command {
  return new Command('check')
    .argument('[files...]', 'modules of environments (default: those of the project, from package.json)')
    .option('--environment <name>', 'check only this environment; may be given several times', eachOf)
    .option('--tasks <n>', 'check this many tasks of each split and level', wholeFrom(1), 200)
    .option('--seconds <n>', 'how long one environment may take, or a module to be loaded', wholeFrom(1), 60)
    .option('--perform-once', "also call tools with effect 'once', once in each episode of the expert")
    .option('--json', 'one JSON object; progress goes to stderr')
    .action(async (files: string[], { environment, tasks, seconds, performOnce, json }: CheckOptions) => {
      for (const file of files) await assertModule(file);
      const modules =
        files.length > 0 ? files.map((file) => fileOfModule(file)) : (await projectModules()).files;
      if (modules.length === 0) {
        throw new GradusError(
          'environment',
          'module',
          'no environment is named: gradus check my-environment.ts',
        );
      }
      const interrupted = new AbortController();
      void untilInterrupted().then(() => interrupted.abort());
      const checked = await checkEnvironments(modules, {
        tasks,
        seconds,
        performOnce: performOnce === true,
        ...(environment && { environments: environment }),
        signal: interrupted.signal,
        say: note,
      });
      if (json === true) printJson('check', checked);
      else print(report(checked));
      process.exitCode = exitCodeOf(checked, interrupted.signal.aborted);
    });
}

const eachOf = (name: string, before: string[] = []): string[] => [...before, name];

function exitCodeOf({ environments, findings }: CheckReport, interrupted: boolean): number {
  if (interrupted) return 130;
  const errors = findings.some(({ is }) => is === 'error');
  return errors || environments.some(({ outcome }) => outcome === 'not-looked-at') ? 1 : 0;
}

/** What may be left out of the name of a module. */
const ENDINGS = ['', '.ts', '.mts', '.cts', '.js', '.mjs', '.cjs'];

/** Throws GradusError('environment', 'module') for what is neither a file nor the name of a ready module. */
export async function assertModule(name: string, folder = process.cwd()): Promise<void> {
  const file = fileOfModule(name, folder);
  if (ENDINGS.some((ending) => existsSync(file + ending))) return;
  const builtIn = (await import('../../environments/families/index.ts')).builtInEnvironments.map(
    (one) => one.name,
  );
  const others = (await projectModules(folder)).files.map((file) => path.relative(folder, file));
  const what = builtIn.includes(name)
    ? `${name} is built in, and gradus check takes files of modules`
    : `there is no file ${name}${didYouMean(name, [...others, ...READY, ...builtIn])}`;
  throw new GradusError('environment', 'module', what);
}

function report({ environments, findings }: CheckReport): string {
  const lines = environments.flatMap((one) => (one.outcome === 'not-looked-at' ? [] : linesOf(one)));
  for (const { is, environment, what, remedy } of findings) {
    lines.push(`\n${is}${environment === null ? '' : ` in ${environment}`}: ${what}\n  ${remedy}`);
  }
  const left = environments.filter(({ outcome }) => outcome === 'not-looked-at');
  if (left.length > 0) {
    lines.push(`\nnot looked at: ${left.length} of ${counted(environments.length, 'environment')}`);
    for (const { name, why } of left) lines.push(`  ${name}: ${why}`);
  }
  const errors = findings.filter(({ is }) => is === 'error').length;
  lines.push(`\n${counted(errors, 'error')}, ${counted(findings.length - errors, 'warning')}`);
  return lines.join('\n');
}

function linesOf(environment: CheckedEnvironment): string[] {
  const { name, tasks, episodes, turns, tools, verifiers, levels, onceCalls, notChecked } = environment;
  const once = Object.entries(onceCalls).map(
    ([tool, { performed, stubbed }]) => `${tool} ${performed} performed, ${stubbed} stubbed`,
  );
  if (levels.length === 0) return [`${name}: nothing of it was checked`];
  return [
    `${name}: levels ${levels.join(', ')}; tools ${tools.join(', ') || 'none'}; verifiers ${verifiers.join(', ') || 'none'}`,
    `  ${tasks} tasks made in two processes, ${episodes} episodes of the expert played (${turns} turns)`,
    ...(once.length > 0 ? [`  calls of once tools: ${once.join('; ')}`] : []),
    ...notChecked.map((what) => `  not checked: ${what}`),
  ];
}
