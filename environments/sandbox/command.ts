import path from 'node:path';
import { GradusError } from '../../core/errors.ts';
import { DEFAULT_LIMITS, WORK_FOLDER } from './contract.ts';
import type { Command, Limits, LongCommand } from './contract.ts';

/** @throws GradusError environment/sandbox-command */
export function refuseCommand(message: string): never {
  throw new GradusError('environment', 'sandbox-command', message);
}

/** The limits of a command, each a whole positive number (seconds may be broken). */
export function commandLimits(command: Pick<Command, 'limits'>): Limits {
  const limits = { ...DEFAULT_LIMITS, ...command.limits };
  for (const [name, value] of Object.entries(limits)) {
    const seconds = name.endsWith('Seconds');
    if (!(value > 0) || (!seconds && !Number.isSafeInteger(value))) {
      refuseCommand(`limits.${name} of a sandboxed command is ${value}: it must be a positive number`);
    }
  }
  return limits;
}

/** Refuses what is no path below the work folder, such as `../x`, `/x`, `a//b` or the empty one. */
function checkWorkPath(what: string, given: string): string {
  const inside =
    given !== '' &&
    !given.includes('\0') &&
    !path.posix.isAbsolute(given) &&
    path.posix.normalize(given) === given &&
    !given.endsWith('/') &&
    given.split('/').every((part) => part !== '..' && part !== '.');
  if (!inside)
    refuseCommand(
      `${what} of a sandboxed command is ${JSON.stringify(given)}: a path below ${WORK_FOLDER} is relative and goes straight down`,
    );
  return given;
}

/** Mounts lie beside the sandbox's own file systems, or below its work folder. */
function checkPlace(at: string): void {
  const taken = ['/', '/proc', '/dev', '/tmp', WORK_FOLDER, '/usr'];
  const ours = taken.includes(at) || at.startsWith('/proc/') || at.startsWith('/dev/');
  if (!path.posix.isAbsolute(at) || path.posix.normalize(at) !== at || at.includes('\0') || ours) {
    refuseCommand(
      `a sandboxed command has a mount or a link at ${JSON.stringify(at)}: it must be an absolute path that the sandbox does not use itself`,
    );
  }
}

/** @throws GradusError environment/sandbox-command where the command asks for something that no sandbox gives */
export function checkCommand(command: Command | LongCommand): void {
  const [program, ...rest] = command.argv;
  if (program === undefined || program === '')
    refuseCommand('a sandboxed command has no program: argv is empty');
  const strings = [program, ...rest, ...Object.entries(command.env ?? {}).flat()];
  if (strings.some((text) => text.includes('\0')))
    refuseCommand('a sandboxed command has a NUL in an argument');
  for (const name of Object.keys(command.env ?? {})) {
    if (name === '' || name.includes('='))
      refuseCommand(`a sandboxed command has a variable called ${JSON.stringify(name)}`);
  }
  if (command.cwd !== undefined && command.cwd !== '.') checkWorkPath('cwd', command.cwd);
  for (const mount of command.mounts ?? []) {
    checkPlace(mount.at);
    if (!path.isAbsolute(mount.from))
      refuseCommand(
        `a sandboxed command mounts ${JSON.stringify(mount.from)}, which is not an absolute path`,
      );
  }
  for (const link of command.links ?? []) {
    checkPlace(link.at);
    if (link.to.includes('\0')) refuseCommand('a sandboxed command has a NUL in a link');
  }
  const paths = (command.files ?? []).map((file) => checkWorkPath('a file', file.path));
  if (new Set(paths).size < paths.length) refuseCommand('a sandboxed command has two files of one path');
  if ('collect' in command) for (const one of command.collect ?? []) checkWorkPath('a path to collect', one);
}

/** `'it''s'` as one word of a POSIX shell. */
export const shellWord = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;
