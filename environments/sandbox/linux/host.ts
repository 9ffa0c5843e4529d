import { accessSync, constants, lstatSync, readlinkSync } from 'node:fs';
import path from 'node:path';

/** What of the host can be read: its programs, and how they find their libraries and each other. */
export interface HostFolders {
  binds: readonly string[];
  symlinks: readonly { at: string; to: string }[];
}

const LINKED = ['/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32'];
const FURTHER = ['/usr', '/etc/alternatives', '/etc/ld.so.cache'];

/** Where /bin and its like are links into /usr, the sandbox has the same links; else the folders. */
export function hostFolders(): HostFolders {
  const there = [...FURTHER, ...LINKED].flatMap((at) => {
    const kind = lstatSync(at, { throwIfNoEntry: false });
    return kind === undefined ? [] : [{ at, linked: kind.isSymbolicLink() }];
  });
  return {
    binds: there.filter(({ linked }) => !linked).map(({ at }) => at),
    symlinks: there.filter(({ linked }) => linked).map(({ at }) => ({ at, to: readlinkSync(at) })),
  };
}

/** Files of that name in the folders of PATH, there or not. */
export const onPath = (name: string, env: NodeJS.ProcessEnv): string[] =>
  (env['PATH'] ?? '')
    .split(':')
    .filter((folder) => path.isAbsolute(folder))
    .map((folder) => path.join(folder, name));

/** The first of them that can be run. */
export function executable(candidates: readonly (string | undefined)[]): string | undefined {
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

/**
 * What starts a program as somebody else, where we are root. `missing` where that is needed and cannot be done.
 */
export function findSetpriv(env: NodeJS.ProcessEnv): { setpriv: string | undefined } | { missing: string } {
  if (process.getuid?.() !== 0) return { setpriv: undefined };
  const setpriv = executable([...onPath('setpriv', env), '/usr/bin/setpriv']);
  if (setpriv !== undefined) return { setpriv };
  return {
    missing:
      'a sandbox must not be started as root, and there is no setpriv to become somebody else: ' +
      'install util-linux, or start Gradus as an ordinary user',
  };
}
