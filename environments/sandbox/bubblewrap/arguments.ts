import type { Limits, LongCommand, Mount } from '../contract.ts';
import { WORK_FOLDER } from '../contract.ts';
import { shellWord } from '../command.ts';

/** Where the program lies in the sandbox and on the host: /usr is the same folder. */
const PRLIMIT = '/usr/bin/prlimit';
const SHELL = '/bin/sh';
/** The launcher, bubblewrap's first process and a `tar` beside the command. */
const OWN_PROCESSES = 3;
const OPEN_FILES = 1024;
/** The sandbox's system files have no owner of ours; processes run as this one. */
export const SANDBOX_UID = 64001;

export const PASSWD = `root:x:0:0:root:/:/usr/sbin/nologin\nsandbox:x:${SANDBOX_UID}:${SANDBOX_UID}:sandbox:/tmp:/bin/sh\n`;
export const GROUP = `root:x:0:\nsandbox:x:${SANDBOX_UID}:\n`;

/** Descriptors as the child process of ours has them; those that the launcher reads must be below 10. */
export interface Descriptors {
  /** Read: a line when the command may begin. */
  gate: number;
  /** Read: `files`, a tar archive. */
  files: number;
  /** Written: a line when the command begins, and then a tar archive of what was collected. */
  collected: number;
  /** Bubblewrap itself. */
  bwrap: number;
  /** Read by bubblewrap, which closes them. */
  seccomp: number;
  passwd: number;
  group: number;
  /** Written by bubblewrap, which closes it. */
  info: number;
}

/** What of the host can be read: its programs, and how they find their libraries and each other. */
export interface HostFolders {
  binds: readonly string[];
  symlinks: readonly { at: string; to: string }[];
}

/**
 * Becomes nobody in particular before bubblewrap is started. Started as root, a sandbox is a way out: /proc/sys keeps
 * root's rights over the host's settings, whatever capabilities are dropped.
 */
export function setprivArguments(): string[] {
  return [
    ['--reuid', String(SANDBOX_UID)],
    ['--regid', String(SANDBOX_UID)],
    '--clear-groups',
    '--no-new-privs',
  ].flat();
}

export function bubblewrapArguments(
  command: Pick<LongCommand, 'env'>,
  limits: Limits,
  descriptors: Descriptors,
  mounts: readonly Mount[],
  host: HostFolders,
): string[] {
  const environment = {
    PATH: '/usr/local/bin:/usr/bin:/bin',
    HOME: '/tmp',
    TMPDIR: '/tmp',
    LANG: 'C.UTF-8',
    ...command.env,
  };
  // Three tmpfs share what may be written: half for the work folder, three eighths and one eighth.
  const eighth = Math.ceil(limits.writableBytes / 8);
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
    ['--clearenv', ...Object.entries(environment).flatMap(([name, value]) => ['--setenv', name, value])],
    ...host.binds.flatMap((folder) => ['--ro-bind', folder, folder]),
    ...host.symlinks.flatMap(({ at, to }) => ['--symlink', to, at]),
    ['--perms', '0444', '--ro-bind-data', String(descriptors.passwd), '/etc/passwd'],
    ['--perms', '0444', '--ro-bind-data', String(descriptors.group), '/etc/group'],
    ['--proc', '/proc', '--remount-ro', '/proc'],
    ['--dev', '/dev', '--size', String(eighth), '--tmpfs', '/dev/shm', '--remount-ro', '/dev'],
    ['--size', String(eighth * 3), '--tmpfs', '/tmp'],
    ['--size', String(eighth * 4), '--tmpfs', WORK_FOLDER],
    ...mounts.flatMap(({ from, at }) => ['--ro-bind', from, at]),
    ['--remount-ro', '/', '--chdir', WORK_FOLDER],
    ['--seccomp', String(descriptors.seccomp), '--info-fd', String(descriptors.info)],
    '--',
  ].flat();
}

/** The kernel's limits, each of one process but for the number of processes; set inside, where it counts the sandbox's own. */
export function limitArguments(limits: Limits): string[] {
  // The soft limit tells the program (SIGXCPU), the hard one ends it.
  const seconds = Math.ceil(limits.cpuSeconds);
  const cpu = Number.isFinite(seconds) ? `${seconds}:${seconds + 1}` : 'unlimited';
  return [
    PRLIMIT,
    `--cpu=${cpu}`,
    // Private writable memory: what a program reserves and never touches (V8, Chromium) does not count.
    `--data=${limits.memoryBytes}`,
    `--nproc=${limits.processes + OWN_PROCESSES}`,
    `--fsize=${limits.fileBytes}`,
    `--nofile=${OPEN_FILES}`,
    '--core=0',
    '--memlock=65536',
    '--msgqueue=0',
    '--',
  ];
}

/**
 * The shell script that becomes the command. It waits at the gate, so that nothing runs before bubblewrap has bound its life
 * to ours; lays out the files; says that it begins; and, where something is to be collected, stays, ends what the command
 * left running, and sends what lies in the work folder. A path that leads out of there through a symbolic link is left out.
 */
export function launcherArguments(
  command: Pick<LongCommand, 'argv' | 'cwd' | 'files'> & { collect?: readonly string[] },
  { gate, files, collected, bwrap }: Pick<Descriptors, 'gate' | 'files' | 'collected' | 'bwrap'>,
): string[] {
  const lines = [`read -r go <&${gate} && exec ${gate}<&- || exit 125`];
  if (command.files?.length) lines.push(`/bin/tar -xof - <&${files} || exit 125`);
  lines.push(`exec ${files}<&- ${bwrap}<&-`);
  if (command.cwd !== undefined) {
    lines.push(`/bin/mkdir -p -- ${shellWord(command.cwd)} && cd -- ${shellWord(command.cwd)} || exit 125`);
  }
  lines.push(`echo begins >&${collected}`);
  if (command.collect?.length) {
    lines.push(
      `"$@" ${collected}>&-`,
      'ended=$?',
      'kill -s KILL -- -1 2>/dev/null',
      `cd ${WORK_FOLDER}`,
      'set --',
      `for one in ${command.collect.map(shellWord).join(' ')}; do`,
      `  [ "$(/usr/bin/realpath -e -- "$one")" = ${WORK_FOLDER}/"$one" ] && set -- "$@" "$one"`,
      'done 2>/dev/null',
      `[ $# -eq 0 ] || /bin/tar -c --format=ustar --hard-dereference -f - -- "$@" >&${collected} 2>/dev/null`,
      'exit $ended',
    );
  } else {
    lines.push(`exec "$@" ${collected}>&-`);
  }
  return [SHELL, '-c', lines.join('\n'), 'sh', ...command.argv];
}
