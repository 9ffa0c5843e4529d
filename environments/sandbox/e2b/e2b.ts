import type { Sandbox as RemoteSandbox } from 'e2b';
import { GradusError, isA, messageOf } from '../../../core/errors.ts';
import { commandLimits, refuseCommand, shellWord } from '../command.ts';
import { WORK_FOLDER } from '../contract.ts';
import type { Command, Ending, Limits, Ran, Running, Sandbox } from '../contract.ts';
import { unpackFiles } from '../linux/archive.ts';
import { ProgramOutput } from '../linux/bounded-output.ts';
import { packed, endingOfExit } from '../linux/follow.ts';
import { BEGINS, processEnvironment, launcherArguments, limitArguments, PRLIMIT } from '../linux/launcher.ts';
import { setprivArguments } from '../linux/user.ts';

/** Our own files in the remote machine; root's. */
const OWN = '/run/gradus';
/** Not that of sandboxes here: where machines share our kernel, processes of one user are counted together. */
const MACHINE_UID = 64002;
/** How much longer than its command a machine lives where nobody ends it, seconds. */
const SPARE_SECONDS = 60;

/**
 * A machine of its own for every command, by E2B's protocol: the program is as far from here as the network is, and what
 * happens in the machine is its operator's to bound. See `run` for what that means for limits.
 */
export class E2B implements Sandbox {
  readonly name = 'e2b';
  readonly talks = false;
  readonly #template: string;

  /** Server and key are those that E2B's own client finds in the environment. */
  constructor(template: string) {
    this.#template = template;
  }

  /**
   * Wall time and output are bounded from here; processor time, files and memory of single processes, and the number of
   * processes, by the kernel there; all processes' memory, and all files', by the machine that the template asks for.
   */
  async run(command: Command): Promise<Ran> {
    const limits = commandLimits(command);
    if (!Number.isFinite(limits.wallSeconds)) refuseCommand('a command in the sandbox e2b has an end');
    if (command.mounts?.length || command.links?.length) {
      refuseCommand(
        'the sandbox e2b mounts nothing of this machine, and makes no links: put it in the template, or give it as files',
      );
    }
    const archive = await packed(command, limits);
    const remote = await this.#create(limits, command.signal);
    try {
      return await answered(command.signal, () => runIn(remote, command, limits, archive));
    } finally {
      // Where this cannot be said, the machine ends by its own clock.
      await remote.kill().catch(() => false);
    }
  }

  start(): Promise<Running> {
    return Promise.reject(
      new GradusError('environment', 'sandbox-command', 'the sandbox e2b runs programs to their end only'),
    );
  }

  /** Whether a machine there says that it reaches no network. Throws as `run` does. */
  async confirmsNoNetwork(): Promise<boolean> {
    const remote = await this.#create(commandLimits({}), undefined);
    try {
      const { allowInternetAccess } = await answered(undefined, () => remote.getInfo());
      return allowInternetAccess === false;
    } finally {
      await remote.kill().catch(() => false);
    }
  }

  #create({ wallSeconds }: Limits, signal: AbortSignal | undefined): Promise<RemoteSandbox> {
    return answered(signal, async () => {
      // Loaded where it is wanted: it takes a fifth of a second.
      const { Sandbox } = await import('e2b');
      return Sandbox.create(this.#template, {
        allowInternetAccess: false,
        timeoutMs: 1000 * (wallSeconds + SPARE_SECONDS),
        ...(signal && { signal }),
      });
    });
  }
}

async function runIn(
  remote: RemoteSandbox,
  command: Command,
  limits: Limits,
  archive: Uint8Array,
): Promise<Ran> {
  const { CommandExitError } = await import('e2b');
  await remote.files.write(
    [
      { path: `${OWN}/gate`, data: 'go\n' },
      { path: `${OWN}/files`, data: bytes(archive) },
      { path: `${OWN}/stdin`, data: bytes(Buffer.from(command.stdin ?? '')) },
    ],
    { user: 'root' },
  );
  const stop = new AbortController();
  let ending: Ending | undefined;
  const end = (reason: Ending): void => {
    ending ??= reason;
    stop.abort();
  };
  const onAbort = (): void => end('killed');
  command.signal?.addEventListener('abort', onAbort);
  const output = new ProgramOutput(limits.outputBytes, () => end('output'));
  const [out, error] = [output.keep(), output.keep()];
  const started = performance.now();
  const clock = setTimeout(() => end('wall-time'), limits.wallSeconds * 1000);
  let exit: number | null;
  try {
    const handle = await remote.commands.run(script(command, limits), {
      background: true,
      user: 'root',
      cwd: '/',
      onStdout: (text) => out.add(Buffer.from(text)),
      onStderr: (text) => error.add(Buffer.from(text)),
      timeoutMs: 0,
      signal: stop.signal,
    });
    exit = (await handle.wait()).exitCode;
  } catch (failure) {
    if (failure instanceof CommandExitError) exit = failure.exitCode;
    else if (ending === undefined) throw failure;
    else exit = null;
  } finally {
    clearTimeout(clock);
    command.signal?.removeEventListener('abort', onAbort);
  }
  command.signal?.throwIfAborted();
  const seconds = (performance.now() - started) / 1000;
  const stage = endingOfExit(exit, ending);
  const collect = command.collect ?? [];
  let files: Ran['files'] = new Map();
  if (stage.ended === 'exit' && (collect.length > 0 || exit === UNABLE)) {
    const collected = await remote.files.read(`${OWN}/collected`, { format: 'bytes', user: 'root' });
    if (collected.length < BEGINS.length) {
      throw new Error(`the command did not begin: ${error.kept().toString().trim()}`);
    }
    files = await unpackFiles(collected.subarray(BEGINS.length), collect);
  }
  return {
    ...stage,
    stdout: out.kept().toString(),
    stderr: error.kept().toString(),
    cut: output.cut,
    files,
    seconds,
  };
}

/** The launcher's own exit where it could not begin. */
const UNABLE = 125;

/**
 * For a shell there that is root: becomes nobody in particular, who cannot be root again, bounded by the kernel, with no
 * variable of the machine's; and ends what the command has left running, which would keep its output open.
 */
function script(command: Command, limits: Limits): string {
  const [shell, flag, launcher, name, ...argv] = launcherArguments(command, {
    gate: 3,
    files: 4,
    collected: 5,
    program: 6,
  });
  const words = (list: readonly (string | undefined)[]): string =>
    list.map((one) => shellWord(one!)).join(' ');
  const nobody = ['setpriv', ...setprivArguments(MACHINE_UID), '--bounding-set=-all', '--inh-caps=-all'];
  const variables = Object.entries(processEnvironment(command)).map(([key, value]) => `${key}=${value}`);
  const bounded = [
    // What is collected goes through one file.
    ...limitArguments({ ...limits, fileBytes: Math.max(limits.fileBytes, 2 * limits.writableBytes) }),
    ...nobody,
    'env',
    '-i',
    ...variables,
    shell,
    flag,
    launcher,
    name,
    PRLIMIT,
    `--fsize=${limits.fileBytes}`,
    '--',
    ...argv,
  ];
  return [
    // A shell tells of signals on its own stderr.
    'exec 9>&2 2>/dev/null',
    `mkdir -p ${WORK_FOLDER} && chown ${MACHINE_UID}:${MACHINE_UID} ${WORK_FOLDER} && cd ${WORK_FOLDER} || exit ${UNABLE}`,
    `${words(bounded)} <${OWN}/stdin 2>&9 9>&- 3<${OWN}/gate 4<${OWN}/files 5>${OWN}/collected`,
    'ended=$?',
    words([...nobody, '/bin/sh', '-c', 'kill -s KILL -- -1']),
    'exit $ended',
  ].join('\n');
}

/** What the server did not do is the sandbox's failure, and may be tried again. */
async function answered<T>(signal: AbortSignal | undefined, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (cause) {
    signal?.throwIfAborted();
    if (isA(cause, GradusError)) throw cause;
    throw new GradusError('infra', 'sandbox-failed', `the sandbox e2b failed: ${messageOf(cause)}`, {
      cause,
      retryable: true,
    });
  }
}

/** As the client takes them. */
const bytes = (data: Uint8Array): ArrayBuffer => new Uint8Array(data).buffer;
