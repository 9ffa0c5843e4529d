import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import path from 'node:path';
import { refuseExtension } from '../../../core/extensions/registry.ts';
import type { AgentSpec } from '../../../core/schema/agent.ts';
import { refusalOfSpec } from '../../../core/schema/strict.ts';
import type { SpecProblem } from '../../../core/schema/strict.ts';
import { sandboxProblems } from '../../../gateway/agent-sandbox.ts';

/**
 * Throws GradusError('spec', 'invalid') unless this machine has the program of an agent's command and the variables that it
 * is to be given, or this process the loop of the project. Whether a server of an agent is there an episode finds out.
 */
export async function assertStartable({
  command,
  sandbox,
  own,
  env,
  inheritEnv = [],
}: AgentSpec): Promise<void> {
  const problems: SpecProblem[] = [];
  const program = command?.[0];
  if (program !== undefined && sandbox)
    for (const { path, message } of await sandboxProblems(program, sandbox, env))
      problems.push({ path: ['agent', ...path], message });
  else if (program !== undefined && !(await isProgram(program)))
    problems.push({
      path: ['agent', 'command', 0],
      message: `${JSON.stringify(program)} is no program that this rollout worker can start (PATH is ${process.env['PATH'] ?? ''}, its folder ${process.cwd()}): install it there, or write its whole path`,
    });
  for (const { field, message } of own ? refuseExtension('agent-loop', own) : [])
    problems.push({ path: ['agent', 'own', field], message });
  inheritEnv.forEach((name, i) => {
    if (process.env[name] !== undefined) return;
    problems.push({
      path: ['agent', 'inheritEnv', i],
      message: `${name} is not set for this rollout worker: set it and start the worker again, or leave it out`,
    });
  });
  if (problems.length > 0) throw refusalOfSpec('the curriculum spec', problems);
}

/** As a command is looked for: by its path where it has one, else in the folders of PATH. */
async function isProgram(program: string): Promise<boolean> {
  if (program === '') return false;
  const folders = program.includes('/') ? [process.cwd()] : (process.env['PATH'] ?? '').split(path.delimiter);
  const found = await Promise.all(folders.map((folder) => isExecutable(path.resolve(folder, program))));
  return found.includes(true);
}

async function isExecutable(file: string): Promise<boolean> {
  try {
    await access(file, constants.X_OK);
    return (await stat(file)).isFile();
  } catch {
    return false;
  }
}
