import type { Limits, LongCommand, Mount } from '../contract.ts';
import { WORK_FOLDER } from '../contract.ts';
import type { HostFolders } from '../linux/host.ts';
import { processEnvironment, writableSizes } from '../linux/launcher.ts';
import { SANDBOX_UID } from '../linux/user.ts';

/** Descriptors that bubblewrap has, and closes before the command begins. */
export interface Descriptors {
  /** Read: the filter of system calls. */
  seccomp: number;
  /** Read: the files of /etc. */
  passwd: number;
  group: number;
  /** Read: further arguments. */
  args: number;
  /** Written: who the first process of the sandbox is. */
  info: number;
}

/** What everybody may read: arguments are shown by `ps` outside, and in the sandbox by /proc/1/cmdline. */
export function bubblewrapArguments(limits: Limits, descriptors: Descriptors, host: HostFolders): string[] {
  return [
    [
      '--unshare-all',
      '--unshare-user',
      '--disable-userns',
      '--uid',
      String(SANDBOX_UID),
      '--gid',
      String(SANDBOX_UID),
    ],
    ['--die-with-parent', '--new-session', '--cap-drop', 'ALL', '--hostname', 'sandbox'],
    ['--clearenv'],
    ...host.binds.flatMap((folder) => ['--ro-bind', folder, folder]),
    ...host.symlinks.flatMap(({ at, to }) => ['--symlink', to, at]),
    ['--perms', '0444', '--ro-bind-data', String(descriptors.passwd), '/etc/passwd'],
    ['--perms', '0444', '--ro-bind-data', String(descriptors.group), '/etc/group'],
    ['--proc', '/proc', '--remount-ro', '/proc'],
    ['--dev', '/dev'],
    ...writableSizes(limits).map(({ at, bytes }) => ['--size', String(bytes), '--tmpfs', at]),
    ['--remount-ro', '/dev'],
    ['--args', String(descriptors.args)],
    ['--remount-ro', '/', '--chdir', WORK_FOLDER],
    ['--seccomp', String(descriptors.seccomp), '--info-fd', String(descriptors.info)],
    '--',
  ].flat();
}

/** What a command has of its own: variables, mounts and links, as bubblewrap reads it from a descriptor. */
export function privateArguments(
  command: Pick<LongCommand, 'env' | 'links'>,
  mounts: readonly Mount[],
): Buffer {
  const words = [
    ...Object.entries(processEnvironment(command)).flatMap(([name, value]) => ['--setenv', name, value]),
    ...mounts.flatMap(({ from, at }) => ['--ro-bind', from, at]),
    ...(command.links ?? []).flatMap(({ at, to }) => ['--symlink', to, at]),
  ];
  return Buffer.from(words.map((word) => `${word}\0`).join(''));
}
