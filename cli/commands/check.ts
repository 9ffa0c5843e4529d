import { existsSync } from 'node:fs';
import path from 'node:path';
import { Command } from 'commander';
import { counted } from '../../core/counted.ts';
import { GradusError } from '../../core/errors.ts';
import { checkEnvironments } from '../../environments/check/check.ts';
import type { Checked } from '../../environments/check/check.ts';
import { print } from '../printable.ts';
import { projectModules } from '../project.ts';
import { wholeFrom } from '../numbers.ts';
import { fileOfModule, READY } from '../../environments/ready.ts';
import { didYouMean } from '../../spec/strict.ts';

interface CheckOptions {
  tasks: number;
  seconds: number;
  json?: boolean;
}

/** `gradus check [FILE…]`: exit code 1 where there is an error. */
export function check(): Command {
  return new Command('check')
    .argument('[files...]', 'modules of environments (default: those of the project, from package.json)')
    .option('--tasks <n>', 'look at so many tasks of each split and level', wholeFrom(1), 200)
    .option('--seconds <n>', 'how long one environment may take', wholeFrom(1), 60)
    .option('--json', 'one JSON object')
    .action(async (files: string[], { tasks, seconds, json }: CheckOptions) => {
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
      const checked = await checkEnvironments(modules, { tasks, seconds });
      print(json === true ? JSON.stringify(checked.findings) : report(checked));
      if (checked.findings.some((finding) => finding.is === 'error')) process.exitCode = 1;
    });
}

/** What may be left out of the name of a module. */
const ENDINGS = ['', '.ts', '.mts', '.cts', '.js', '.mjs', '.cjs'];

/** Throws GradusError('environment', 'module') for what is neither a file nor the name of a ready module. */
export async function assertModule(name: string, folder = process.cwd()): Promise<void> {
  const file = fileOfModule(name, folder);
  if (ENDINGS.some((ending) => existsSync(file + ending))) return;
  const builtIn = (await import('../../environments/index.ts')).builtInEnvironments.map((one) => one.name);
  const others = (await projectModules(folder)).files.map((file) => path.relative(folder, file));
  const what = builtIn.includes(name)
    ? `${name} is built in, and no file: modules are checked`
    : `there is no file ${name}${didYouMean(name, [...others, ...READY, ...builtIn])}`;
  throw new GradusError('environment', 'module', what);
}

function report({ environments, findings }: Checked): string {
  const lines = environments.map(({ name, tasks, plays, tools, verifiers, levels }) => {
    const turns = plays.reduce((sum, { play }) => sum + ('turns' in play ? play.turns.length : 0), 0);
    return (
      `${name}: levels ${levels.join(', ')}; tools ${tools.join(', ') || 'none'}; verifiers ${verifiers.join(', ') || 'none'}\n` +
      `  ${tasks.length} tasks made in two processes, ${plays.length} episodes of the expert played (${turns} turns)`
    );
  });
  for (const { is, environment, what, remedy } of findings) {
    lines.push(`\n${is}${environment === null ? '' : ` in ${environment}`}: ${what}\n  ${remedy}`);
  }
  const errors = findings.filter(({ is }) => is === 'error').length;
  lines.push(`\n${counted(errors, 'error')}, ${counted(findings.length - errors, 'warning')}`);
  return lines.join('\n');
}
