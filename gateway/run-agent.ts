import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { AgentSandbox } from '../core/schema/agent.ts';
import type { AgentEpisode } from './agent-episode.ts';
import { failedRun, runOf } from './agent-run.ts';
import type { AgentRun } from './agent-run.ts';
import { readAnswer } from './answer-file.ts';
import { Problem } from './problem.ts';
import { runCommand } from './run-command.ts';
import type { CommandEnd } from './run-command.ts';
import { runSandboxed } from './run-sandboxed.ts';
import type { Gateway } from './server.ts';

export interface AgentCommand {
  /** Program and arguments; no shell reads them. */
  argv: readonly [string, ...string[]];
  /** What the agent is to do: `GRADUS_TASK`. */
  task: string;
  /** An agent that has not ended by then is killed. */
  timeoutSeconds: number;
  /** Besides those of the gateway; nothing of this process's own is handed on but `PATH` and, on this machine, `HOME`. */
  variables?: Readonly<Record<string, string>>;
  /** Where it starts on this machine; absent: in an empty folder, which is removed when it has ended. */
  cwd?: string;
  /** What it sees and may take; absent: it runs with the rights of this process. */
  sandbox?: AgentSandbox | undefined;
  /** Its end kills the agent. */
  signal: AbortSignal;
}

/**
 * Starts a command that makes an episode through the gateway, and waits until it has ended. Its answer is what it leaves in
 * the file `GRADUS_ANSWER`. An agent that fails, is silent until the time is over or branches has a failed episode, which is
 * never a reward of 0. Throws the signal's reason where that is aborted, and what a sandbox throws that does not come up.
 */
export async function runAgent(
  gateway: Gateway,
  episode: AgentEpisode,
  { variables = {}, sandbox, ...command }: AgentCommand,
): Promise<AgentRun> {
  command.signal.throwIfAborted();
  try {
    const ended = sandbox
      ? await runSandboxed(gateway, episode, { ...command, variables, sandbox })
      : await runHere(gateway, episode, { ...command, variables });
    await episode.close();
    if ('answer' in ended) return runOf(episode, null, ended.answer);
    return ended.killed ? { ...failedRun(ended.problem), killed: true } : runOf(episode, ended.problem, null);
  } finally {
    await episode.close();
  }
}

/** Runs it with the rights of this process. */
async function runHere(
  gateway: Gateway,
  episode: AgentEpisode,
  { argv, task, timeoutSeconds, variables, cwd, signal }: AgentCommand,
): Promise<CommandEnd> {
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
    const problem = await runCommand(argv, { env, cwd: cwd ?? folder }, timeoutSeconds, signal);
    return problem ?? { answer: await readAnswer(answerFile) };
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return { problem: error.message, killed: false };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
