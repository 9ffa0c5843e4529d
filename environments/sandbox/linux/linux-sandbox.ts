import { GradusError, isA } from '../../../core/errors.ts';
import { commandLimits } from '../command.ts';
import type { SandboxBackend, Command, Limits, LongCommand, Ran, Running, Sandbox } from '../contract.ts';
import { unpackFiles } from './archive.ts';
import { ProgramOutput } from './bounded-output.ts';
import type { Launched } from './follow.ts';
import type { AnyCommand } from './launcher.ts';
import { lookout } from './watch.ts';

/** A sandbox that is a tree of processes on this machine. */
export abstract class LinuxSandbox implements Sandbox {
  abstract readonly name: SandboxBackend;
  readonly talks = true;

  protected abstract launch(command: AnyCommand, limits: Limits): Promise<Launched>;

  async run(command: Command): Promise<Ran> {
    const limits = commandLimits(command);
    await lookout();
    const { stdin, stdout, stderr, begun, over, end, collected } = await this.launch(command, limits);
    const output = new ProgramOutput(limits.outputBytes, () => end('output'));
    const [out, error] = [output.read(stdout), output.read(stderr)];
    stdin.end(command.stdin ?? '');
    await begun.catch((reason: unknown) => {
      // One that is not wanted any more need not have come up.
      command.signal?.throwIfAborted();
      explain(reason, error().toString());
    });
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
    const endless = { wallSeconds: Number.POSITIVE_INFINITY, cpuSeconds: Number.POSITIVE_INFINITY };
    const limits = commandLimits({ limits: { ...endless, ...command.limits } });
    await lookout();
    const { stdin, stdout, stderr, pipes, begun, over, end } = await this.launch(command, limits);
    await begun.catch((reason: unknown) => {
      command.signal?.throwIfAborted();
      throw reason;
    });
    return { stdin, stdout, stderr, pipes, over, kill: () => end('killed') };
  }
}

/** Adds to the error of a sandbox that did not come up what was read of its last words. */
function explain(reason: unknown, text: string): never {
  if (!isA(reason, GradusError) || text === '') throw reason;
  throw new GradusError(reason.boundary, reason.type, `${reason.message}${text.trim()}`, {
    retryable: reason.retryable,
    cause: reason,
  });
}
