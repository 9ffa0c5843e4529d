import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { messageOf } from '../core/errors.ts';

/** Of what a command writes on stderr, for the reason why it failed. */
export const LAST_WORDS = 2000;
/** Exit codes by which shells say that a signal ended what they ran: SIGKILL and SIGTERM. */
export const BY_SIGNAL = [137, 143];

/**
 * Becomes the command that it is given. Before, it leaves a shell in its group that waits for the end of a pipe which this
 * process holds, and then kills the group: an agent whose worker was killed must not go on in the world. That shell is no
 * child of the command, which may wait for all of its own.
 */
const ENDS_WITH_US = '( (read -r _; kill -KILL 0) <&3 >/dev/null 2>&1 & ); exec "$@" 3<&-';

/** Exit codes by which that shell says that there is no such program, or that it cannot be executed. */
const NOT_STARTED = [126, 127];

/** Why a command has not ended well; `killed`: a signal of somebody else has ended it. */
export interface CommandProblem {
  problem: string;
  killed: boolean;
}

/** How a command has ended: well, with the answer that it left (null without one), or not. */
export type CommandEnd = { answer: string | null } | CommandProblem;

/**
 * Runs a command until it has ended; null where it has ended with 0. It has a process group of its own, which is killed at the
 * end, when the time is over, when the signal is aborted, and when this process dies. Throws the signal's reason.
 */
export async function runCommand(
  argv: readonly [string, ...string[]],
  options: { env: Record<string, string>; cwd: string },
  timeoutSeconds: number,
  signal: AbortSignal,
): Promise<CommandProblem | null> {
  const child = spawn('/bin/sh', ['-c', ENDS_WITH_US, 'sh', ...argv], {
    ...options,
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
  });
  // Nothing is written to it, and its other end is closed by the kill at the end.
  child.stdio[3]!.on('error', () => undefined);
  let words = '';
  child.stderr!.setEncoding('utf8').on('data', (text: string) => (words = (words + text).slice(-LAST_WORDS)));
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    killGroup(child);
  }, timeoutSeconds * 1000);
  const kill = (): void => killGroup(child);
  signal.addEventListener('abort', kill);
  try {
    const how = await new Promise<{ code: number | null; by: string | null } | { error: Error }>(
      (resolve) => {
        child.once('error', (error) => resolve({ error }));
        child.once('exit', (code, by) => resolve({ code, by }));
      },
    );
    signal.throwIfAborted();
    if ('error' in how)
      return { problem: `${argv[0]} could not be started (${messageOf(how.error)})`, killed: false };
    if (NOT_STARTED.includes(how.code ?? 0) && /^sh: .*\bexec: /u.test(words))
      return { problem: `${argv[0]} could not be started (${words.trim()})`, killed: false };
    if (isLate) return { problem: `it had not ended after ${timeoutSeconds} s`, killed: false };
    if (how.code === 0) return null;
    return {
      problem: `it ended with ${how.by ?? how.code}: ${words.trim() || 'it wrote nothing on stderr'}`,
      killed: how.by !== null || BY_SIGNAL.includes(how.code ?? 0),
    };
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', kill);
    killGroup(child);
  }
}

/** The command and whatever it has started and left. */
function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
