import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, open, readFile } from 'node:fs/promises';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { GradusError, messageOf } from '../../core/errors.ts';
import { isAlive } from '../setup/file-lock.ts';
import { timeoutSignal } from '../../core/timeout-signal.ts';

export interface ServerCommand {
  /** What a person calls it, as in "the Temporal server". */
  title: string;
  command: string;
  args: readonly string[];
  env?: Readonly<Record<string, string>>;
  logFile: string;
  /** One attempt to see whether it serves: resolves when it does, rejects when it does not yet. */
  probe: (signal: AbortSignal) => Promise<void>;
}

export interface ServerExit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

/** A running server that does not outlive this process. */
export interface ServerProcess {
  readonly pid: number;
  readonly exited: Promise<ServerExit>;
  /** Asks it to end, and after a while makes it. Resolves when it is gone. */
  stop(): Promise<void>;
  /** SIGKILL, at once: nothing is flushed. */
  kill(): void;
}

const WATCHDOG = path.join(import.meta.dirname, 'watchdog.mjs');
const READY_MS = 60_000;
const STOP_GRACE_MS = 8000;
const PROBE_EVERY_MS = 25;

/** The last lines of a log, to be shown with an error. */
export async function logTail(file: string): Promise<string> {
  if (!existsSync(file)) return '(no log)';
  const handle = await open(file);
  try {
    const { size } = await handle.stat();
    const buffer = Buffer.alloc(Math.min(size, 16_384));
    await handle.read(buffer, 0, buffer.length, size - buffer.length);
    return buffer.toString('utf8').trimEnd().split('\n').slice(-20).join('\n') || '(empty log)';
  } finally {
    await handle.close();
  }
}

/**
 * After a kill of the process that started it, a server needs a moment to end: two must not share data or fight for a
 * port. Whatever has that pid after the watchdog's own grace is another program, with a recycled number.
 */
export async function untilPredecessorIsGone(logFile: string): Promise<void> {
  const file = `${logFile}.pid`;
  const deadline = Date.now() + STOP_GRACE_MS;
  while (existsSync(file) && Date.now() < deadline) {
    const pid = Number(await readFile(file, 'utf8').catch(() => '')); // it may be removed at this moment
    if (pid > 0 && !isAlive(pid)) return;
    await delay(PROBE_EVERY_MS);
  }
}

/** The variables of this process that a server gets; TEMPORAL_*, VGW_* and the like would change its configuration. */
function plainEnvironment(): Record<string, string> {
  const kept = ['PATH', 'HOME', 'TMPDIR', 'TZ', 'LANG', 'SYSTEMROOT', 'USER'];
  const pairs = kept.map((name) => [name, process.env[name]] as const);
  return Object.fromEntries(pairs.filter((pair): pair is [string, string] => pair[1] !== undefined));
}

function sendSignal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

type Report = { pid: number } | { error: string } | ServerExit;

async function launch(server: ServerCommand): Promise<{ pid: number; exited: Promise<ServerExit> }> {
  await mkdir(path.dirname(server.logFile), { recursive: true });
  const watchdog = spawn(process.execPath, [WATCHDOG, server.logFile, server.command, ...server.args], {
    // Its own group and session: a Ctrl-C in the terminal reaches this process only, which stops workers before servers.
    detached: true,
    stdio: ['pipe', 'pipe', 'ignore'],
    env: { ...plainEnvironment(), ...server.env },
  });
  return new Promise((resolve, reject) => {
    const failed = (reason: string) =>
      reject(new GradusError('infra', 'server-start', `${server.title} could not be started: ${reason}`));
    let serverPid: number | undefined;
    let exit: ServerExit | undefined;
    const exited = new Promise<ServerExit>((done) => {
      watchdog.once('close', () => {
        // Without a report it was the watchdog that was killed: a server must not go on unguarded.
        if (exit === undefined && serverPid !== undefined) sendSignal(serverPid, 'SIGKILL');
        done(exit ?? { code: null, signal: 'SIGKILL' });
      });
    });
    watchdog.once('error', (error) => failed(messageOf(error)));
    watchdog.once('close', () => failed(`it ended at once. Its log: ${server.logFile}`));
    createInterface({ input: watchdog.stdout }).on('line', (line) => {
      const report = JSON.parse(line) as Report;
      if ('pid' in report) {
        serverPid = report.pid;
        resolve({ pid: serverPid, exited });
      } else if ('error' in report) failed(report.error);
      else exit = report;
    });
  });
}

async function untilReady(server: ServerCommand, exited: Promise<ServerExit>): Promise<void> {
  const deadline = timeoutSignal(READY_MS);
  const late = once(deadline, 'abort');
  let ended: ServerExit | undefined;
  const watch = exited.then((exit) => (ended = exit));
  for (let last: unknown; ;) {
    try {
      // A probe that hangs, on a server that has died or on one that is stuck, must not be waited for.
      await Promise.race([
        server.probe(deadline),
        watch.then(() => Promise.reject(new Error('it ended'))),
        late.then(() => Promise.reject(new Error('a request had no answer'))),
      ]);
      return;
    } catch (error) {
      last = error;
    }
    if (ended !== undefined || deadline.aborted) {
      const what = ended
        ? `ended while starting (${ended.signal ?? `exit code ${ended.code}`})`
        : `did not answer within ${READY_MS / 1000} s (${messageOf(last)})`;
      throw new GradusError(
        'infra',
        'server-start',
        `${server.title} ${what}. The end of its log, ${server.logFile}:\n${await logTail(server.logFile)}`,
        { cause: last, retryable: true },
      );
    }
    await delay(PROBE_EVERY_MS);
  }
}

/**
 * Starts a server under a watchdog and resolves once its probe succeeds.
 * @throws GradusError infra/server-start with the end of the server's log
 */
export async function startServer(server: ServerCommand): Promise<ServerProcess> {
  const { pid, exited } = await launch(server);
  let gone = false;
  void exited.then(() => (gone = true));
  // The pid cannot be another's: it is signalled only while the watchdog has not reported its end.
  const signal = (name: NodeJS.Signals) => {
    if (!gone) sendSignal(pid, name);
  };
  const stop = async () => {
    signal('SIGTERM');
    const force = setTimeout(() => signal('SIGKILL'), STOP_GRACE_MS);
    await exited;
    clearTimeout(force);
  };
  try {
    await untilReady(server, exited);
  } catch (error) {
    signal('SIGKILL');
    await exited;
    throw error;
  }
  return { pid, exited, stop, kill: () => signal('SIGKILL') };
}
