import { chmod, copyFile, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { AgentSandbox } from '../core/schema/agent.ts';
import { WORK_FOLDER } from '../environments/sandbox/contract.ts';
import type { Ending, Ran } from '../environments/sandbox/contract.ts';
import type { AgentEpisode } from './agent-episode.ts';
import { openAgentSandbox, searchPath, shownTo } from './agent-sandbox.ts';
import { MOST_ANSWER_BYTES, noAnswer, TOO_LONG } from './answer-file.ts';
import { BY_SIGNAL, LAST_WORDS } from './run-command.ts';
import type { CommandEnd } from './run-command.ts';
import type { Gateway } from './server.ts';

const MIB = 2 ** 20;
/** In the sandbox: the folder with the gateway's socket and the forwarder. */
const MOUNTED = '/run/gradus';
/** In the sandbox: where the forwarder listens. */
const PORT = 8377;
/** Of the work folder. */
const ANSWER = 'gradus-answer';
/** What the forwarder takes, a process of Node, besides what the agent may have. */
const FORWARDER = { memoryBytes: 96 * MIB, processes: 16 };

export interface SandboxedCommand {
  argv: readonly [string, ...string[]];
  task: string;
  timeoutSeconds: number;
  variables: Readonly<Record<string, string>>;
  sandbox: AgentSandbox;
  signal: AbortSignal;
}

/**
 * Runs a command in the sandbox until it has ended. Its network is a loopback of its own, on which a forwarder passes on
 * what it asks to a socket that serves this episode alone. All of it ends with this process. Throws the signal's reason,
 * and what `Sandbox.run` throws.
 */
export async function runSandboxed(
  gateway: Gateway,
  episode: AgentEpisode,
  { argv, task, timeoutSeconds, variables, sandbox, signal }: SandboxedCommand,
): Promise<CommandEnd> {
  const box = await openAgentSandbox();
  // Nobody else has a way to it; whoever is in the sandbox may be another user.
  const closed = await mkdtemp(path.join(tmpdir(), 'gradus-agent-'));
  const open = path.join(closed, 'open');
  try {
    await mkdir(open);
    await chmod(open, 0o755);
    const forwarder = path.join(open, 'forwarder.mjs');
    await copyFile(path.join(import.meta.dirname, 'sandbox-forwarder.mjs'), forwarder);
    await chmod(forwarder, 0o644);
    const stopServing = await gateway.serveAlone(episode, path.join(open, 'socket'));
    try {
      const { cwd, mounts } = shownTo(sandbox);
      const ran = await box.run({
        argv: [process.execPath, `${MOUNTED}/forwarder.mjs`, String(PORT), `${MOUNTED}/socket`, cwd, ...argv],
        env: {
          ...searchPath(),
          ...variables,
          ...gateway.variablesFor(episode, `http://127.0.0.1:${PORT}`),
          GRADUS_TASK: task,
          GRADUS_ANSWER: `${WORK_FOLDER}/${ANSWER}`,
        },
        mounts: [...mounts, { at: MOUNTED, from: open }],
        collect: [ANSWER],
        limits: {
          wallSeconds: timeoutSeconds,
          cpuSeconds: sandbox.cpuSeconds ?? timeoutSeconds,
          memoryBytes: sandbox.memoryMiB * MIB + FORWARDER.memoryBytes,
          processes: sandbox.processes + FORWARDER.processes,
          writableBytes: sandbox.writableMiB * MIB,
          fileBytes: sandbox.writableMiB * MIB,
          outputBytes: MIB,
        },
        signal,
      });
      return endOf(ran, timeoutSeconds);
    } finally {
      await stopServing();
    }
  } finally {
    await rm(closed, { recursive: true, force: true });
  }
}

/** Why a command was ended that would have gone on. */
const ENDED: Record<Exclude<Ending, 'exit' | 'wall-time'>, string> = {
  'cpu-time': 'it took more processor time than it may: raise agent.sandbox.cpuSeconds',
  memory: 'it took more memory than it may: raise agent.sandbox.memoryMiB, or writableMiB for files',
  output: 'it wrote more than 64 MiB on stderr',
  killed: 'its sandbox was killed',
};

function endOf({ ended, exit, signal, stderr, files }: Ran, timeoutSeconds: number): CommandEnd {
  if (ended === 'wall-time') return { problem: `it had not ended after ${timeoutSeconds} s`, killed: false };
  if (ended !== 'exit') return { problem: ENDED[ended], killed: ended === 'killed' };
  if (exit !== 0) {
    const words = stderr.slice(-LAST_WORDS).trim() || 'it wrote nothing on stderr';
    return { problem: `it ended with ${signal ?? exit}: ${words}`, killed: BY_SIGNAL.includes(exit ?? 0) };
  }
  const answer = files.get(ANSWER);
  if (answer !== undefined && answer.length > MOST_ANSWER_BYTES)
    return { problem: noAnswer(TOO_LONG).message, killed: false };
  return { answer: answer === undefined ? null : new TextDecoder().decode(answer) };
}
