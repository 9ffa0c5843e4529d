import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { EpisodeStatus } from '../core/episode/episode.ts';
import { messageOf } from '../core/errors.ts';
import type { AgentEpisode } from './agent-episode.ts';
import type { Gateway } from './server.ts';
import type { Row } from './turn-tree.ts';

export interface AgentCommand {
  /** Program and arguments; no shell reads them. */
  argv: readonly [string, ...string[]];
  /** What the agent is to do: `GRADUS_TASK`. */
  task: string;
  /** An agent that has not ended by then is killed. */
  timeoutSeconds: number;
  /** Besides those of the gateway; nothing of this process's own is handed on but `PATH` and `HOME`. */
  variables?: Readonly<Record<string, string>>;
  /** Its end kills the agent. */
  signal: AbortSignal;
}

/** How an agent's episode ended; `row` has its tokens where there is one branch and it did not fail. */
export interface AgentRun {
  status: Extract<EpisodeStatus, { kind: 'answered' | 'ended' | 'truncated' | 'failed' }>;
  row: Row | null;
}

/** Of what an agent writes on stderr, for the reason why it failed. */
const LAST_WORDS = 2000;

/**
 * Starts a command that makes an episode through the gateway, and waits until it has ended. Its answer is what it leaves in
 * the file `GRADUS_ANSWER`. An agent that fails, is silent until the time is over or branches has a failed episode, which is
 * never a reward of 0. Throws the signal's reason where that is aborted.
 */
export async function runAgent(
  gateway: Gateway,
  episode: AgentEpisode,
  { argv, task, timeoutSeconds, variables = {}, signal }: AgentCommand,
): Promise<AgentRun> {
  signal.throwIfAborted();
  const folder = await mkdtemp(path.join(tmpdir(), 'gradus-agent-'));
  try {
    const answerFile = path.join(folder, 'answer');
    const inherited = ['PATH', 'HOME'].flatMap((name) => {
      const value = process.env[name];
      return value === undefined ? [] : [[name, value]];
    });
    const env: Record<string, string> = {
      ...(Object.fromEntries(inherited) as Record<string, string>),
      ...variables,
      ...gateway.variablesFor(episode),
      GRADUS_TASK: task,
      GRADUS_ANSWER: answerFile,
    };
    const problem = await ended(argv, { env, cwd: folder }, timeoutSeconds, signal);
    await episode.close();
    if (problem !== null) return failed(problem);
    const answer = await readFile(answerFile, 'utf8').catch(absent);
    return resultOf(episode, answer);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function resultOf(episode: AgentEpisode, answer: string | null): AgentRun {
  const rows = episode.rows();
  if (rows.length === 0) return failed('it has asked the policy for nothing');
  if (rows.length > 1) {
    return failed(
      `its turns have ${rows.length} branches, and only one can be learnt from: let the agent send back what it was told as it is`,
    );
  }
  const row = rows[0]!;
  if (answer !== null) return { status: { kind: 'answered', answer }, row };
  if (episode.ended === 'turns') return { status: { kind: 'truncated', limit: 'turns' }, row };
  return { status: { kind: 'ended' }, row };
}

const failed = (reason: string): AgentRun => ({
  status: { kind: 'failed', boundary: 'environment', reason: `The agent failed: ${reason}` },
  row: null,
});

/** Why the command has not ended well; null where it has. */
async function ended(
  [program, ...rest]: AgentCommand['argv'],
  options: { env: Record<string, string>; cwd: string },
  timeoutSeconds: number,
  signal: AbortSignal,
): Promise<string | null> {
  // A group of its own: what it has started ends with it.
  const child = spawn(program, rest, { ...options, detached: true, stdio: ['ignore', 'ignore', 'pipe'] });
  let words = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (words = (words + text).slice(-LAST_WORDS)));
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
    if ('error' in how) return `${program} could not be started (${messageOf(how.error)})`;
    if (isLate) return `it had not ended after ${timeoutSeconds} s`;
    if (how.code === 0) return null;
    return `it ended with ${how.by ?? how.code}: ${words.trim() || 'it wrote nothing on stderr'}`;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', kill);
    killGroup(child);
  }
}

/** An agent may end without an answer. */
function absent(error: unknown): null {
  if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  return null;
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
