import type { Limits, LongCommand, Mount } from '../contract.ts';
import { WORK_FOLDER } from '../contract.ts';
import type { HostFolders } from '../linux/host.ts';
import { environmentOf, writableSizes } from '../linux/launcher.ts';
import { SANDBOX_UID } from '../linux/user.ts';

/** Descriptors that bubblewrap has, and closes before the command begins. */
export interface Descriptors {
  /** Read: the filter of system calls. */
  seccomp: number;
  /** Read: the files of /etc. */
  passwd: number;
  group: number;
  /** Written: who the first process of the sandbox is. */
  info: number;
}

export function bubblewrapArguments(
  command: Pick<LongCommand, 'env'>,
  limits: Limits,
  descriptors: Descriptors,
  mounts: readonly Mount[],
  host: HostFolders,
): string[] {
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
    [
      '--clearenv',
      ...Object.entries(environmentOf(command)).flatMap(([name, value]) => ['--setenv', name, value]),
    ],
    ...host.binds.flatMap((folder) => ['--ro-bind', folder, folder]),
    ...host.symlinks.flatMap(({ at, to }) => ['--symlink', to, at]),
    ['--perms', '0444', '--ro-bind-data', String(descriptors.passwd), '/etc/passwd'],
    ['--perms', '0444', '--ro-bind-data', String(descriptors.group), '/etc/group'],
    ['--proc', '/proc', '--remount-ro', '/proc'],
    ['--dev', '/dev'],
    ...writableSizes(limits).map(({ at, bytes }) => ['--size', String(bytes), '--tmpfs', at]),
    ['--remount-ro', '/dev'],
    ...mounts.flatMap(({ from, at }) => ['--ro-bind', from, at]),
    ['--remount-ro', '/', '--chdir', WORK_FOLDER],
    ['--seccomp', String(descriptors.seccomp), '--info-fd', String(descriptors.info)],
    '--',
  ].flat();
}
