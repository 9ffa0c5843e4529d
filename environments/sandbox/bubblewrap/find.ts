import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { messageOf } from '../../../core/errors.ts';
import { commandLine } from '../../../core/installation.ts';
import { cacheEntry, cacheRoot } from '../../../infra/cache-dir.ts';
import { executable, findSetpriv, hostFolders, onPath } from '../linux/host.ts';
import { PRLIMIT } from '../linux/launcher.ts';
import { probe } from '../linux/probe.ts';
import { Bubblewrap } from './bubblewrap.ts';

/** Where `npm run setup:sandbox` leaves Debian's bubblewrap. */
export const cachedBubblewrap = (): string =>
  path.join(cacheEntry(cacheRoot(), { name: 'bubblewrap', version: 'debian' }), 'bwrap');

/** Bubblewrap's options that are not in every version in use. */
const NEEDED_OPTIONS = ['--disable-userns', '--size', '--perms', '--info-fd'];

export type Found = { sandbox: Bubblewrap } | { missing: string };

/** A sandbox that has run a command here, or why there is none and what to do about it. */
export async function findBubblewrap(env: NodeJS.ProcessEnv = process.env): Promise<Found> {
  if (process.platform !== 'linux') return { missing: 'bubblewrap needs Linux' };
  const architecture = process.arch;
  if (architecture !== 'x64' && architecture !== 'arm64') {
    return {
      missing: `bubblewrap needs a filter of system calls, which is written for x86-64 and arm64, not ${architecture}`,
    };
  }
  const bwrap = executable([
    env['GRADUS_BWRAP'],
    ...onPath('bwrap', env),
    '/usr/bin/bwrap',
    cachedBubblewrap(),
  ]);
  if (bwrap === undefined) {
    return {
      missing: `bubblewrap is not installed: "apt-get install bubblewrap", or "${commandLine('setup sandbox')}" without root`,
    };
  }
  const lacks = await lackingOptions(bwrap);
  if (lacks !== undefined) return { missing: lacks };
  if (executable([PRLIMIT]) === undefined)
    return { missing: `bubblewrap needs ${PRLIMIT}: install util-linux` };
  const user = findSetpriv(env);
  if ('missing' in user) return user;
  const sandbox = new Bubblewrap({ bwrap, ...user, host: hostFolders() }, architecture);
  const wrong = await probe(sandbox);
  return wrong === undefined
    ? { sandbox }
    : { missing: `bubblewrap does not work here. ${adviceFor(wrong)}` };
}

async function lackingOptions(bwrap: string): Promise<string | undefined> {
  try {
    const { stdout } = await promisify(execFile)(bwrap, ['--help'], { env: {} });
    const lacking = NEEDED_OPTIONS.filter((option) => !stdout.includes(option));
    if (lacking.length === 0) return undefined;
    return `${bwrap} is too old, it has no ${lacking.join(', ')}: version 0.8 or newer is needed`;
  } catch (error) {
    return `${bwrap} cannot be run: ${messageOf(error)}`;
  }
}

/** What bubblewrap says where it may not make namespaces, and who forbids that. */
function adviceFor(message: string): string {
  if (
    /namespace|uid map|Operation not permitted|Permission denied|No space left|Invalid argument/i.test(
      message,
    )
  ) {
    return (
      `The system does not let it make user namespaces (${message}). In Docker, start the container with --security-opt ` +
      'seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined; on Ubuntu 23.10 and newer give /usr/bin/bwrap an AppArmor ' +
      'profile with "userns,"; elsewhere look at the sysctls user.max_user_namespaces and kernel.unprivileged_userns_clone'
    );
  }
  return message;
}
