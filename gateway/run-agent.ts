import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { AgentEpisode } from './agent-episode.ts';
import { failedRun, runOf } from './agent-run.ts';
import type { AgentRun } from './agent-run.ts';
import { readAnswer } from './answer-file.ts';
import { Problem } from './problem.ts';
import { runCommand } from './run-command.ts';
import type { Gateway } from './server.ts';

export interface AgentCommand {
  /** Program and arguments; no shell reads them. */
  argv: readonly [string, ...string[]];
  /** What the agent is to do: `GRADUS_TASK`. */
  task: string;
  /** An agent that has not ended by then is killed. */
  timeoutSeconds: number;
  /** Besides those of the gateway; nothing of this process's own is handed on but `PATH` and `HOME`. */
  variables?: Readonly<Record<string, string>>;
  /** Where it starts; absent: in an empty folder, which is removed when it has ended. */
  cwd?: string;
  /** Its end kills the agent. */
  signal: AbortSignal;
}

/**
 * Starts a command that makes an episode through the gateway, and waits until it has ended. Its answer is what it leaves in
 * the file `GRADUS_ANSWER`. An agent that fails, is silent until the time is over or branches has a failed episode, which is
 * never a reward of 0. Throws the signal's reason where that is aborted.
 */
export async function runAgent(
  gateway: Gateway,
  episode: AgentEpisode,
  { argv, task, timeoutSeconds, variables = {}, cwd, signal }: AgentCommand,
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
    const ended = await runCommand(argv, { env, cwd: cwd ?? folder }, timeoutSeconds, signal);
    await episode.close();
    if (ended?.killed) return { ...failedRun(ended.problem), killed: true };
    if (ended !== null) return runOf(episode, ended.problem, null);
    try {
      return runOf(episode, null, await readAnswer(answerFile));
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      return runOf(episode, error.message, null);
    }
  } finally {
    await episode.close();
    await rm(folder, { recursive: true, force: true });
  }
}
