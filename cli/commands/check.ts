import { Command } from 'commander';
import { GradusError } from '../../core/errors.ts';
import { checkEnvironments } from '../../environments/check/check.ts';
import type { Checked } from '../../environments/check/check.ts';
import { print } from '../printable.ts';
import { projectModules } from '../project.ts';
import { wholeFrom } from '../numbers.ts';
import { fileOfModule } from '../../environments/ready.ts';

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

const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`;
