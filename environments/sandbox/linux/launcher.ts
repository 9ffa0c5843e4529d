import { shellWord } from '../command.ts';
import type { Limits, LongCommand } from '../contract.ts';
import { WORK_FOLDER } from '../contract.ts';

/** Where the programs lie in the sandbox and on the host: /usr is the same folder. */
export const PRLIMIT = '/usr/bin/prlimit';
const SHELL = '/bin/sh';
/** The launcher, the sandbox's first process and a `tar` beside the command. */
const OWN_PROCESSES = 3;
const OPEN_FILES = 1024;
/** The launcher is a shell that knows descriptors below 10 only, and has four of its own. */
export const MAX_PIPES = 3;
/** The first that the launcher writes. */
export const BEGINS = 'begins\n';

/** A command, to its end or without one. */
export type AnyCommand = LongCommand & { collect?: readonly string[] };

/** Descriptors of the launcher, below 10. */
export interface LauncherDescriptors {
  /** Read: a line when the command may begin. */
  gate: number;
  /** Read: the command's `files`, a tar archive. */
  files: number;
  /** Written: a line when the command begins, and then a tar archive of what was collected. */
  collected: number;
  /** The sandbox's own program. */
  program: number;
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
    '--',
  ];
}

/**
 * The shell script that becomes the command. It waits at the gate, so that nothing runs before the sandbox's life is bound
 * to ours; lays out the files; says that it begins; and, where something is to be collected, stays, ends what the command
 * left running, and sends what lies in the work folder. A path that leads out of there through a symbolic link is left out.
 */
export function launcherArguments(
  command: AnyCommand,
  { gate, files, collected, program }: LauncherDescriptors,
): string[] {
  const lines = [`read -r go <&${gate} && exec ${gate}<&- || exit 125`];
  if (command.files?.length) lines.push(`/bin/tar -xof - <&${files} || exit 125`);
  lines.push(`exec ${files}<&- ${program}<&-`);
  if (command.cwd !== undefined) {
    lines.push(`/bin/mkdir -p -- ${shellWord(command.cwd)} && cd -- ${shellWord(command.cwd)} || exit 125`);
  }
  lines.push(`echo ${BEGINS.trim()} >&${collected}`);
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

/** The variables of a command. */
export const processEnvironment = (command: Pick<LongCommand, 'env'>): Record<string, string> => ({
  PATH: '/usr/local/bin:/usr/bin:/bin',
  HOME: '/tmp',
  TMPDIR: '/tmp',
  LANG: 'C.UTF-8',
  ...command.env,
});

/** The sizes of the three file systems that can be written, bytes. */
export function writableSizes({
  writableBytes,
}: Pick<Limits, 'writableBytes'>): { at: string; bytes: number }[] {
  const eighth = Math.ceil(writableBytes / 8);
  return [
    { at: '/dev/shm', bytes: eighth },
    { at: '/tmp', bytes: 3 * eighth },
    { at: WORK_FOLDER, bytes: 4 * eighth },
  ];
}
