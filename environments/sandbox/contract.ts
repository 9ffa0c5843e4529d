import type { Readable, Writable } from 'node:stream';

/** What a sandboxed command may use. Everything is counted over the command and all that it starts. */
export interface Limits {
  /** From the moment the command runs until `run` answers, but for a grace of a few seconds. */
  wallSeconds: number;
  /**
   * Of processes that live, and of those that are over as far as somebody waited for them: children of a program that
   * ignores SIGCHLD are counted nowhere, so that what bounds all of it is `wallSeconds` on each processor.
   */
  cpuSeconds: number;
  /** Memory but for what files hold: that is `writableBytes`. */
  memoryBytes: number;
  /** Processes and threads at one time. */
  processes: number;
  /** Open descriptors of all processes together: a socket can hold 208 KB of the kernel's memory that no other figure shows. */
  descriptors: number;
  /** One file. */
  fileBytes: number;
  /** All files together: half of it in the work folder, the rest in /tmp and /dev/shm. At least a kilobyte each. */
  writableBytes: number;
  /** What is kept of stdout and stderr together. Sixty-four times as much ends the command. */
  outputBytes: number;
}

const MIB = 2 ** 20;

export const DEFAULT_LIMITS: Readonly<Limits> = {
  wallSeconds: 10,
  cpuSeconds: 10,
  memoryBytes: 512 * MIB,
  processes: 64,
  descriptors: 2048,
  fileBytes: 32 * MIB,
  writableBytes: 128 * MIB,
  outputBytes: 64 * 1024,
};

/** How many times `outputBytes` a command may print (what is beyond `outputBytes` is dropped) before it is ended. */
export const OUTPUT_PATIENCE = 64;

/** Where the command runs, and where `files` and `collect` lie, in every sandbox that has files. */
export const WORK_FOLDER = '/work';

export interface Command {
  /** The program, looked up on the sandbox's PATH, and its arguments. */
  argv: readonly string[];
  /** Nothing if absent: the command reads an end of file. `start` leaves it open and ignores this. */
  stdin?: string | Uint8Array;
  /** Below the work folder; the work folder itself if absent. */
  cwd?: string;
  /** Nothing of ours is inherited: PATH, HOME, TMPDIR and LANG are the sandbox's own unless named here. */
  env?: Readonly<Record<string, string>>;
  /** Folders or files of the host that can be read at `at`, such as a virtual environment. */
  mounts?: readonly Mount[];
  /** Symbolic links, such as from /app into the work folder. */
  links?: readonly Link[];
  /** Written into the work folder before the command runs. */
  files?: readonly WorkFile[];
  /** Files and folders of the work folder that are brought back, as they are when the command ends. */
  collect?: readonly string[];
  limits?: Partial<Limits>;
  /** Ends the command; `run` then rejects with the signal's reason. */
  signal?: AbortSignal;
}

export interface Mount {
  at: string;
  from: string;
}

export interface Link {
  at: string;
  to: string;
}

export interface WorkFile {
  /** Relative to the work folder. */
  path: string;
  content: string | Uint8Array;
  executable?: boolean;
}

/**
 * Why a command is over: it ended by itself (also by a signal that it, or a limit of the kernel's, sent), or it was ended
 * because a limit was reached. `killed`: whoever started it, or somebody else, ended it.
 */
export type Ending = 'exit' | 'wall-time' | 'cpu-time' | 'memory' | 'output' | 'killed';

export interface Ran {
  /** As a shell reports it: 128 + n where signal n ended the command. null where it was ended by us. */
  exit: number | null;
  /** The name of that signal, such as SIGSEGV. */
  signal: string | null;
  /** UTF-8; what is none is replaced. */
  stdout: string;
  stderr: string;
  /** Whether there was more output than `outputBytes`. */
  cut: boolean;
  ended: Ending;
  /**
   * What `collect` asked for, by path: regular files only, of at most `writableBytes` together. A file that is not there,
   * and any file of a command that was ended, is missing.
   */
  files: Map<string, Uint8Array>;
  /** Wall time of the command. */
  seconds: number;
}

/** A command that goes on, such as a browser. It ends with the process that started it. */
export interface Running {
  stdin: Writable;
  stdout: Readable;
  stderr: Readable;
  /** Further pipes, readable and writable: descriptor 3, 4, … of the command. */
  pipes: readonly (Readable & Writable)[];
  /** Ends it and all that it has started, at once. */
  kill(): void;
  /** Settles when it is over; never rejects. */
  over: Promise<Pick<Ran, 'exit' | 'signal' | 'ended' | 'seconds'>>;
}

/** What `start` takes: output is the caller's to bound, and `wallSeconds` is without end if absent. */
export interface LongCommand extends Omit<Command, 'stdin' | 'collect'> {
  /** How many pipes besides stdin, stdout and stderr. */
  pipes?: number;
}

export type SandboxBackend = 'bubblewrap' | 'gvisor' | 'e2b' | 'wasi-python' | 'quickjs';

/**
 * Runs code that nobody has read. It sees no environment, no network and no file of ours but what it is given, and leaves
 * nothing behind. Whatever it does, `run` answers within `wallSeconds` and a few more, with bounded memory here.
 */
export interface Sandbox {
  readonly name: SandboxBackend;
  /** False where programs run to their end only, each command in a machine of its own: `start` refuses. */
  readonly talks: boolean;
  /**
   * Runs a command to its end. A command that fails, or is ended, is an answer.
   * Throws GradusError('environment', 'sandbox-command') for a command that cannot be asked for (a path out of the work
   * folder, a mount that is not there, a program that this backend cannot run), and GradusError('infra', 'sandbox-failed')
   * when the sandbox itself did not come up, which trying again may help.
   */
  run(command: Command): Promise<Ran>;
  /** Starts a command that is talked to. Throws as `run` does. */
  start(command: LongCommand): Promise<Running>;
}
