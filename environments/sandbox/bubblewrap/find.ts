import { execFile } from 'node:child_process';
import { accessSync, constants, lstatSync, readlinkSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { messageOf } from '../../../core/errors.ts';
import { commandLine } from '../../../core/installation.ts';
import { cacheEntry, cacheRoot } from '../../../infra/cache-dir.ts';
import type { HostFolders } from './arguments.ts';
import { Bubblewrap } from './bubblewrap.ts';

/** Where `npm run setup:sandbox` leaves Debian's bubblewrap. */
export const cachedBubblewrap = (): string =>
  path.join(cacheEntry(cacheRoot(), { name: 'bubblewrap', version: 'debian' }), 'bwrap');

/** Bubblewrap's options that are not in every version in use. */
const NEEDED_OPTIONS = ['--disable-userns', '--size', '--perms', '--info-fd'];
const FOLDERS = ['/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32'];
const FURTHER = ['/usr', '/etc/alternatives', '/etc/ld.so.cache'];

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
  if (executable(['/usr/bin/prlimit']) === undefined)
    return { missing: 'bubblewrap needs /usr/bin/prlimit: install util-linux' };
  const root = process.getuid?.() === 0;
  const setpriv = root ? executable([...onPath('setpriv', env), '/usr/bin/setpriv']) : undefined;
  if (root && setpriv === undefined) {
    return {
      missing:
        'bubblewrap must not be started as root, and there is no setpriv to become somebody else: install util-linux, or start Gradus as an ordinary user',
    };
  }
  const sandbox = new Bubblewrap({ bwrap, setpriv, host: hostFolders() }, architecture);
  return (await probe(sandbox)) ?? { sandbox };
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

/** Runs a command with a file in and out. */
async function probe(sandbox: Bubblewrap): Promise<{ missing: string } | undefined> {
  try {
    const ran = await sandbox.run({
      argv: ['cp', 'in', 'out'],
      files: [{ path: 'in', content: 'probe' }],
      collect: ['out'],
    });
    if (Buffer.from(ran.files.get('out') ?? []).toString() === 'probe') return undefined;
    return {
      missing: `bubblewrap ran a command that came to nothing (exit ${ran.exit}, ${ran.ended}): ${ran.stderr.trim()}`,
    };
  } catch (error) {
    return { missing: `bubblewrap does not work here. ${adviceFor(messageOf(error))}` };
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

const onPath = (name: string, env: NodeJS.ProcessEnv): string[] =>
  (env['PATH'] ?? '')
    .split(':')
    .filter((folder) => path.isAbsolute(folder))
    .map((folder) => path.join(folder, name));

function executable(candidates: readonly (string | undefined)[]): string | undefined {
  return candidates.find((file) => {
    if (!file) return false;
    try {
      accessSync(file, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/** Where /bin and its like are links into /usr, the sandbox has the same links; else the folders. */
function hostFolders(): HostFolders {
  const kinds = [...FURTHER, ...FOLDERS].map((folder) => ({
    folder,
    kind: lstatSync(folder, { throwIfNoEntry: false }),
  }));
  const there = kinds.filter(({ kind }) => kind !== undefined);
  return {
    binds: there.filter(({ kind }) => !kind!.isSymbolicLink()).map(({ folder }) => folder),
    symlinks: there
      .filter(({ kind }) => kind!.isSymbolicLink())
      .map(({ folder }) => ({ at: folder, to: readlinkSync(folder) })),
  };
}
