import { mkdir, symlink } from 'node:fs/promises';
import path from 'node:path';
import { stackEnvironment } from '../../infra/dev/stack-addresses.ts';
import type { Stack } from '../../infra/dev/stack.ts';
import { runCommand } from '../../infra/setup/command.ts';
import { requireBinary } from '../../infra/setup/server-binaries.ts';
import { ROOT, taggedBlock } from './markdown.ts';

export type Change = (block: string) => string;

/**
 * Runs blocks of a page in a shell, as a person would who has the stack's addresses in the environment; `usual` says
 * what is replaced in all of them. Gives what was printed, and throws where the shell did not end well.
 */
export async function readmeCommands(
  { folder, stack, page, prefix }: { folder: string; stack: Stack; page: string; prefix: string },
  usual: Change,
): Promise<(tag: string, change?: Change) => Promise<string>> {
  // The pages' commands say `temporal`, whatever the file of the CLI is called.
  const bin = path.join(folder, 'bin');
  await mkdir(bin, { recursive: true });
  await symlink(await requireBinary('temporal-cli'), path.join(bin, 'temporal'));
  const env = {
    ...process.env,
    ...stackEnvironment(stack),
    PATH: `${bin}${path.delimiter}${process.env['PATH']}`,
  };
  return async (tag, change = (block) => block) => {
    const commands = usual(change(taggedBlock(page, `${prefix} ${tag}`)));
    const { code, stdout, stderr } = await runCommand('bash', ['-euc', commands], { env, cwd: ROOT });
    if (code !== 0) throw new Error(`${commands}ended with ${code}:\n${stdout}${stderr}`);
    return stdout;
  };
}

/** The JSON in what a command prints for people. */
export function jsonIn(printed: string): unknown {
  const found = /\{.*\}/s.exec(printed);
  if (!found) throw new Error(`no JSON in:\n${printed}`);
  return JSON.parse(found[0]) as unknown;
}
