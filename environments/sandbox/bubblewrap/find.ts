import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
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
const NEEDED_OPTIONS = ['--disable-userns', '--size', '--perms', '--info-fd', '--args'];

export type FoundBubblewrap = { sandbox: Bubblewrap } | { missing: string };

/** A sandbox that has run a command here, or why there is none and what to do about it. */
export async function findBubblewrap(env: NodeJS.ProcessEnv = process.env): Promise<FoundBubblewrap> {
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
  if (wrong === undefined) return { sandbox };
  sandbox.close();
  return { missing: `bubblewrap does not work here. ${adviceFor(wrong, bwrap)}` };
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

/** What bubblewrap says where it may not make namespaces. */
const REFUSALS =
  /namespace|uid map|Operation not permitted|Permission denied|No space left|Invalid argument/i;

/** A setting of the kernel's, and what to do where it has the value that forbids user namespaces. */
const FORBIDDING = (bwrap: string): readonly [setting: string, value: string, advice: string][] => [
  [
    'user/max_user_namespaces',
    '0',
    'user.max_user_namespaces is 0: "sysctl -w user.max_user_namespaces=15000" allows them',
  ],
  [
    'kernel/unprivileged_userns_clone',
    '0',
    'kernel.unprivileged_userns_clone is 0: "sysctl -w kernel.unprivileged_userns_clone=1" allows them',
  ],
  [
    'kernel/apparmor_restrict_unprivileged_userns',
    '1',
    `kernel.apparmor_restrict_unprivileged_userns is 1, as on Ubuntu from 23.10 on: give ${bwrap} an AppArmor profile with "userns,", or set it to 0`,
  ],
];

/** Who forbids namespaces, by the kernel's settings (`read` gives one, trimmed, or undefined), and what to do about it. */
export function adviceFor(message: string, bwrap: string, read = setting): string {
  if (!REFUSALS.test(message)) return message;
  const found = FORBIDDING(bwrap).flatMap(([name, value, advice]) => (read(name) === value ? [advice] : []));
  const advice =
    found.length > 0
      ? found.join('; ')
      : 'no setting of the kernel forbids it, so a container may: start Docker with --security-opt seccomp=unconfined ' +
        '--security-opt apparmor=unconfined --security-opt systempaths=unconfined';
  return `The system does not let it make user namespaces (${message}); ${advice}`;
}

function setting(name: string): string | undefined {
  try {
    return readFileSync(`/proc/sys/${name}`, 'utf8').trim();
  } catch {
    return undefined; // this kernel has no such setting
  }
}
