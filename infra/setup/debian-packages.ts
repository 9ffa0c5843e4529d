import { mkdir, readdir } from 'node:fs/promises';
import path from 'node:path';
import type { GradusError } from '../../core/errors.ts';
import { findOnPath, runCommand, tailOf } from './command.ts';

/** Debian's packages by apt and without root: the system itself is not touched. */
export interface Debian {
  /** Runs a command of apt with lists of our own, and returns what it prints. */
  apt(command: 'apt-get' | 'apt-cache', args: readonly string[], cwd?: string): Promise<string>;
  /** Where `apt-get install --download-only` leaves packages. */
  archives: string;
  /** Unpacks all packages of a folder into another one, and returns their files' names. */
  unpack(packages: string, into: string): Promise<string[]>;
}

/**
 * Apt with fresh lists of its own below `making`, by the system's own sources and their signatures: the system's lists may
 * be gone or too old, and only root may renew them. Throws what `failed` makes of a message, retryable where the archive
 * could not be reached.
 */
export async function debianIn(
  making: string,
  failed: (message: string, retryable: boolean) => GradusError,
): Promise<Debian> {
  const tools = await Promise.all(['apt-get', 'apt-cache', 'dpkg-deb'].map((tool) => findOnPath(tool)));
  if (tools.includes(undefined)) throw failed('There is no apt-get here.', false);
  const archives = path.join(making, 'cache', 'archives');
  await mkdir(path.join(making, 'lists', 'partial'), { recursive: true });
  await mkdir(path.join(archives, 'partial'), { recursive: true });
  const ours = [
    `Dir::State::lists=${making}/lists`,
    `Dir::Cache=${making}/cache`,
    'Debug::NoLocking=1',
    // Root would become another user here, who has no way into our cache.
    'APT::Sandbox::User=root',
  ].flatMap((option) => ['-o', option]);
  const run = async (command: string, args: readonly string[], cwd = making): Promise<string> => {
    const { code, stdout, stderr } = await runCommand(command, args, { cwd });
    if (code === 0) return stdout;
    throw failed(`${command} ${args.join(' ')} failed:\n${tailOf(stderr || stdout)}`, true);
  };
  const apt: Debian['apt'] = (command, args, cwd) => run(command, [...ours, ...args], cwd);
  await apt('apt-get', ['--quiet', 'update']);
  return {
    apt,
    archives,
    unpack: async (packages, into) => {
      const files = (await readdir(packages)).filter((name) => name.endsWith('.deb'));
      for (const file of files) await run('dpkg-deb', ['-x', path.join(packages, file), into]);
      return files;
    },
  };
}
