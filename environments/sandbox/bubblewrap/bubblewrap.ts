import { GradusError, isA } from '../../../core/errors.ts';
import { unpackFiles } from '../archive.ts';
import { BoundedOutput } from '../bounded-output.ts';
import { limitsOf } from '../command.ts';
import type { Command, LongCommand, Ran, Running, Sandbox } from '../contract.ts';
import { TemporaryBytes } from '../temporary-bytes.ts';
import { GROUP, PASSWD } from './arguments.ts';
import { launch } from './launch.ts';
import type { Installation } from './launch.ts';
import { compileFilter } from './seccomp.ts';
import type { Architecture } from './seccomp.ts';

/**
 * Linux namespaces by bubblewrap: a process tree, a file system and a network (with nobody in it) of its own, no
 * capabilities, a filter of system calls, and limits set by the kernel and by a look from outside.
 */
export class Bubblewrap implements Sandbox {
  readonly name = 'bubblewrap';
  readonly #installation: Installation;

  constructor(found: Pick<Installation, 'bwrap' | 'setpriv' | 'host'>, architecture: Architecture) {
    this.#installation = {
      ...found,
      filter: new TemporaryBytes(compileFilter(architecture)),
      passwd: new TemporaryBytes(PASSWD),
      group: new TemporaryBytes(GROUP),
    };
  }

  async run(command: Command): Promise<Ran> {
    const limits = limitsOf(command);
    const { stdin, stdout, stderr, begun, over, end, collected } = await launch(
      this.#installation,
      command,
      limits,
    );
    const output = new BoundedOutput(limits.outputBytes, () => end('output'));
    const [out, error] = [output.read(stdout), output.read(stderr)];
    stdin.end(command.stdin ?? '');
    await begun.catch((reason: unknown) => explain(reason, error().toString()));
    const stage = await over;
    command.signal?.throwIfAborted();
    return {
      ...stage,
      stdout: out().toString(),
      stderr: error().toString(),
      cut: output.cut,
      files: stage.ended === 'exit' ? await unpackFiles(collected(), command.collect ?? []) : new Map(),
    };
  }

  async start(command: LongCommand): Promise<Running> {
    const limits = limitsOf({
      limits: {
        wallSeconds: Number.POSITIVE_INFINITY,
        cpuSeconds: Number.POSITIVE_INFINITY,
        ...command.limits,
      },
    });
    const { stdin, stdout, stderr, pipes, begun, over, end } = await launch(
      this.#installation,
      command,
      limits,
    );
    await begun;
    return { stdin, stdout, stderr, pipes, over, kill: () => end('killed') };
  }
}

/** Adds to the error of a sandbox that did not come up what was read of its last words. */
function explain(reason: unknown, said: string): never {
  if (!isA(reason, GradusError) || said === '') throw reason;
  throw new GradusError(reason.boundary, reason.type, `${reason.message}: ${said.trim()}`, {
    retryable: reason.retryable,
    cause: reason,
  });
}
