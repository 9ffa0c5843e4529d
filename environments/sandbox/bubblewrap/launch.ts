import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { constants as system } from 'node:os';
import type { Readable, Writable } from 'node:stream';
import { GradusError } from '../../../core/errors.ts';
import { packFiles } from '../archive.ts';
import { checkCommand, refuseCommand } from '../command.ts';
import type { Ending, Limits, LongCommand, Ran } from '../contract.ts';
import type { TemporaryBytes } from '../temporary-bytes.ts';
import { watch } from '../watch.ts';
import { bubblewrapArguments, launcherArguments, limitArguments, setprivArguments } from './arguments.ts';
import type { HostFolders } from './arguments.ts';
import { inheritedDescriptors } from './inherited.ts';
import { planMounts } from './mounts.ts';
import type { MountPlan } from './mounts.ts';

/** How long bubblewrap may take to build its namespaces and lay out files, on a machine that is busy. */
const SETUP_SECONDS = 30;
/** How long what has been ended may take to be gone. */
const GRACE_SECONDS = 2;
/** The first line that the launcher writes. */
const BEGINS = Buffer.from('begins\n');
/** In an archive, of each file: its header, padding and a long name; and the end. */
const ARCHIVE_OVERHEAD = 16 * 1024;
/** The launcher is a shell that knows descriptors below 10 only, and closes four. */
const MAX_PIPES = 3;
/** Linux's O_PATH: a name, not the right to read. */
const O_PATH = 0x200000;

export interface Installation {
  bwrap: string;
  /** Present where we are root, which the sandbox must not be. */
  setpriv: string | undefined;
  host: HostFolders;
  filter: TemporaryBytes;
  passwd: TemporaryBytes;
  group: TemporaryBytes;
}

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

/** Starts a sandbox around one command. Throws what `Sandbox.run` throws for commands that cannot be asked for. */
export async function launch(
  installation: Installation,
  command: LongCommand & { collect?: readonly string[] },
  limits: Limits,
): Promise<Launched> {
  checkCommand(command);
  const archive = await packFiles(command.files ?? []);
  if (archive.length > limits.writableBytes / 2) {
    refuseCommand(
      `the files of a sandboxed command take ${archive.length} bytes, and its work folder has half of limits.writableBytes, ${limits.writableBytes}`,
    );
  }
  const pipes = command.pipes ?? 0;
  if (pipes > MAX_PIPES) refuseCommand(`a sandboxed command has ${pipes} pipes: at most ${MAX_PIPES}`);
  command.signal?.throwIfAborted();
  const mounts = planMounts(command.mounts ?? [], installation.setpriv !== undefined);
  const child = spawnChild(installation, command, limits, pipes, mounts);
  return follow(child, pipes, archive, command, limits);
}

function spawnChild(
  { bwrap, setpriv, host, filter, passwd, group }: Installation,
  command: LongCommand & { collect?: readonly string[] },
  limits: Limits,
  pipes: number,
  mounts: MountPlan,
): ChildProcess {
  const ours: number[] = [];
  const opened = (descriptor: number): number => {
    ours.push(descriptor);
    return descriptor;
  };
  try {
    const nothing = opened(openSync('/dev/null', 'r'));
    const stdio: ('pipe' | 'ignore' | number)[] = ['pipe', 'pipe', 'pipe'];
    const pass = (what: 'pipe' | number): number => stdio.push(what) - 1;
    for (let i = 0; i < pipes; i++) pass('pipe');
    const descriptors = {
      gate: pass('pipe'),
      files: pass('pipe'),
      collected: pass('pipe'),
      bwrap: pass(opened(openSync(bwrap, O_PATH))),
      info: pass('pipe'),
      seccomp: pass(opened(filter.open())),
      passwd: pass(opened(passwd.open())),
      group: pass(opened(group.open())),
    };
    // What we were given ourselves ends here: each is replaced by /dev/null.
    for (const descriptor of inheritedDescriptors()) {
      while (stdio.length <= descriptor) stdio.push('ignore');
      if (stdio[descriptor] === 'ignore') stdio[descriptor] = nothing;
    }
    const argv = [
      ...mounts.prefix,
      // By its descriptor, because it may lie in a folder of ours where nobody else may go.
      ...(setpriv === undefined
        ? [bwrap]
        : [setpriv, ...setprivArguments(), `/proc/self/fd/${descriptors.bwrap}`]),
      ...bubblewrapArguments(command, limits, descriptors, mounts.binds, host),
      ...limitArguments(limits),
      ...launcherArguments(command, descriptors),
    ];
    // Without an environment: in the sandbox, /proc/1/environ is bubblewrap's own.
    return spawn(argv[0]!, argv.slice(1), { env: {}, cwd: '/', stdio });
  } finally {
    for (const descriptor of ours) closeSync(descriptor);
  }
}

function follow(
  child: ChildProcess,
  pipeCount: number,
  archive: Uint8Array,
  command: LongCommand & { collect?: readonly string[] },
  limits: Limits,
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
  const pipes = rest.slice(0, pipeCount);
  const [gate, files, collected, info] = rest.slice(pipeCount) as unknown as [
    Writable,
    Writable,
    Readable,
    Readable,
  ];

  let ending: Ending | undefined;
  let started: number | undefined;
  let observer: { stop(): void } | undefined;
  const end = (reason: Ending): void => {
    ending ??= reason;
    child.kill('SIGKILL');
  };
  const onAbort = (): void => end('killed');
  command.signal?.addEventListener('abort', onAbort);
  const setup = setTimeout(() => end('wall-time'), SETUP_SECONDS * 1000);

  // Bubblewrap says who is the first process of the sandbox after it has bound its life to ours: then the gate opens.
  let root: number | undefined;
  let said = '';
  info.setEncoding('utf8').on('data', (text: string) => {
    said += text;
    const pid = /"child-pid": (\d+)/.exec(said)?.[1];
    if (pid === undefined || root !== undefined) return;
    root = Number(pid);
    gate.end('go\n');
    files.end(archive);
  });

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
    observer = watch(root!, limits, end);
    begun.resolve();
  });

  const finish = (exit: number | null): void => {
    clearTimeout(setup);
    observer?.stop();
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
    const signal = exit !== null && exit > 128 ? signalName(exit - 128) : null;
    const ended = ending ?? (exit === null ? 'killed' : signal === 'SIGXCPU' ? 'cpu-time' : 'exit');
    over.resolve({
      exit: ended === 'exit' ? exit : null,
      signal: ended === 'exit' ? signal : null,
      ended,
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
