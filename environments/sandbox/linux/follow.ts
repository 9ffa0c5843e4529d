import type { ChildProcess } from 'node:child_process';
import { constants as system } from 'node:os';
import type { Readable, Writable } from 'node:stream';
import { GradusError } from '../../../core/errors.ts';
import { checkCommand, refuseCommand } from '../command.ts';
import type { Ending, Limits, Ran } from '../contract.ts';
import { packFiles } from './archive.ts';
import { BEGINS, MAX_PIPES } from './launcher.ts';
import type { AnyCommand } from './launcher.ts';
import { watchProgram } from './watch.ts';
import type { Watch } from './watch.ts';

/** How long a sandbox may take to come up and lay out files, on a machine that is busy. */
const SETUP_SECONDS = 30;
/** How long what has been ended may take to be gone. */
const GRACE_SECONDS = 2;
/** In an archive, of each file: its header, padding and a long name; and the end. */
const ARCHIVE_OVERHEAD = 16 * 1024;

export interface Launched {
  stdin: Writable;
  stdout: Readable;
  stderr: Readable;
  pipes: (Readable & Writable)[];
  /** Resolves when the command begins. Rejects, when nothing is left of it, where it could not. */
  begun: Promise<void>;
  /** Resolves when nothing of it is left. */
  over: Promise<Pick<Ran, 'exit' | 'signal' | 'ended' | 'seconds'>>;
  /** Ends it, at once and with all that it has started. The first reason counts. */
  end: (ending: Ending) => void;
  /** The archive of what was collected; whole once it is over. */
  collected: () => Buffer;
}

/** What goes into the sandbox before the command. Throws where the command cannot be asked for. */
export async function packed(command: AnyCommand, limits: Limits): Promise<Uint8Array> {
  checkCommand(command);
  const pipes = command.pipes ?? 0;
  if (pipes > MAX_PIPES) refuseCommand(`a sandboxed command has ${pipes} pipes: at most ${MAX_PIPES}`);
  const archive = await packFiles(command.files ?? []);
  const room = limits.writableBytes / 2;
  if (archive.length > room) {
    refuseCommand(
      `the files of a sandboxed command take ${archive.length} bytes, and its work folder has half of limits.writableBytes, ${room}`,
    );
  }
  command.signal?.throwIfAborted();
  return archive;
}

/**
 * Lets a sandbox that was spawned begin, and sees it to its end.
 *
 * `rootOf` calls back, once, with the process below which all of the sandbox is, when its life is bound to ours; it is
 * given the streams that were passed after the launcher's.
 */
export function follow(
  child: ChildProcess,
  archive: Uint8Array,
  command: AnyCommand,
  limits: Limits,
  rootOf: (further: readonly (Readable & Writable)[], found: (pid: number) => void) => void,
  { keepsMemoryInFiles = false } = {},
): Launched {
  const streams = child.stdio.filter((stream) => stream !== null) as unknown as (Readable & Writable)[];
  // The other end goes when the sandbox does: what could not be written then is not missed.
  for (const stream of streams) stream.on('error', () => {});
  const [stdin, stdout, stderr, ...rest] = streams as [
    Writable,
    Readable,
    Readable,
    ...(Readable & Writable)[],
  ];
  const pipes = rest.slice(0, command.pipes ?? 0);
  const [gate, files, collected, ...further] = rest.slice(pipes.length) as unknown as [
    Writable,
    Writable,
    Readable,
    ...(Readable & Writable)[],
  ];

  let ending: Ending | undefined;
  let started: number | undefined;
  let observer: Watch | undefined;
  let gone = false;
  const end = (reason: Ending): void => {
    ending ??= reason;
    child.kill('SIGKILL');
  };
  const onAbort = (): void => end('killed');
  command.signal?.addEventListener('abort', onAbort);
  const setup = setTimeout(() => end('wall-time'), SETUP_SECONDS * 1000);

  const begun = withResolvers<void>();
  const over = withResolvers<Awaited<Launched['over']>>();
  const pieces: Buffer[] = [];
  let size = 0;
  const most = BEGINS.length + limits.writableBytes + ARCHIVE_OVERHEAD * ((command.collect?.length ?? 0) + 1);
  collected.on('data', (piece: Buffer) => {
    size += piece.length;
    if (size > most) return end('output');
    pieces.push(piece);
    if (started !== undefined || size < BEGINS.length) return;
    started = performance.now();
    clearTimeout(setup);
    observer!.begun();
    begun.resolve();
  });

  rootOf(further, (root) => {
    const watched = { root, child: child.pid!, limits, keepsMemoryInFiles, setupSeconds: SETUP_SECONDS };
    // Nothing runs that nobody looks at.
    void (async () => {
      try {
        const watching = await watchProgram(watched, () => end('killed'));
        if (gone) watching.stop();
        else observer = watching;
        gate.end('go\n');
        files.end(archive);
      } catch (cause) {
        begun.reject(cause);
        end('killed');
      }
    })();
  });

  const finish = (exit: number | null): void => {
    clearTimeout(setup);
    command.signal?.removeEventListener('abort', onAbort);
    const last = String(stderr.read() ?? '').trim();
    for (const stream of streams) stream.destroy();
    if (started === undefined) {
      begun.reject(
        new GradusError('infra', 'sandbox-failed', `the sandbox did not come up (exit ${exit}): ${last}`, {
          retryable: true,
        }),
      );
    }
    over.resolve({
      ...endingOfExit(exit, ending),
      seconds: started === undefined ? 0 : (performance.now() - started) / 1000,
    });
  };
  child.once('error', (error) => {
    begun.reject(
      new GradusError('infra', 'sandbox-failed', `the sandbox cannot be started: ${error.message}`, {
        cause: error,
      }),
    );
    finish(null);
  });
  child.once('exit', () => {
    gone = true;
    const reason = observer?.stop();
    ending ??= reason;
    // Its pipes close with the last process that holds them; nobody waits for one that the kernel does not let go.
    const impatient = setTimeout(() => finish(child.exitCode), GRACE_SECONDS * 1000);
    child.once('close', () => {
      clearTimeout(impatient);
      finish(child.exitCode);
    });
  });

  return {
    stdin,
    stdout,
    stderr,
    pipes,
    begun: begun.promise,
    over: over.promise,
    end,
    collected: () => Buffer.concat(pieces).subarray(BEGINS.length),
  };
}

/** How a command is over, by a shell's exit status (null where there is none) and why we ended it, if we did. */
export function endingOfExit(
  exit: number | null,
  ending: Ending | undefined,
): Pick<Ran, 'exit' | 'signal' | 'ended'> {
  const signal = exit !== null && exit > 128 ? signalName(exit - 128) : null;
  const ended = ending ?? (exit === null ? 'killed' : signal === 'SIGXCPU' ? 'cpu-time' : 'exit');
  return ended === 'exit' ? { exit, signal, ended } : { exit: null, signal: null, ended };
}

const SIGNAL_NAMES = new Map(Object.entries(system.signals).map(([name, number]) => [number, name]));
const signalName = (number: number): string | null => SIGNAL_NAMES.get(number) ?? null;

/** Promise.withResolvers, which Node 20 lacks. */
function withResolvers<T>(): {
  promise: Promise<T>;
  resolve: (value: T) => void;
  reject: (reason: unknown) => void;
} {
  let resolve!: (value: T) => void;
  let reject!: (reason: unknown) => void;
  const promise = new Promise<T>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}
