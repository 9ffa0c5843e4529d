import { rmSync } from 'node:fs';
import path from 'node:path';
import type { Limits, Mount } from '../contract.ts';
import { follow, packed } from '../linux/follow.ts';
import type { Launched } from '../linux/follow.ts';
import type { HostFolders } from '../linux/host.ts';
import { launcherArguments, limitArguments } from '../linux/launcher.ts';
import type { AnyCommand, LauncherDescriptors } from '../linux/launcher.ts';
import { LinuxSandbox } from '../linux/linux-sandbox.ts';
import { planMounts } from '../linux/mounts.ts';
import { spawnSandbox } from '../linux/spawn.ts';
import { setprivArguments } from '../linux/user.ts';
import { writeBundle } from './bundle.ts';

interface Installation {
  runsc: string;
  /** Present where we are root, which the sandbox must not be. */
  setpriv: string | undefined;
  host: HostFolders;
}

/** What gVisor's own processes and its kernel take before the command has begun. */
const OWN_MEMORY = 128 * 2 ** 20;

/**
 * A kernel of its own, written in Go, between the program and Linux: a hole in Linux's calls is none here. It takes half a
 * second to come up, and its limits are those of a look from outside and of its own kernel, which knows fewer.
 */
export class GVisor extends LinuxSandbox {
  readonly name = 'gvisor';
  readonly #installation: Installation;

  constructor(installation: Installation) {
    super();
    this.#installation = installation;
  }

  protected async launch(command: AnyCommand, limits: Limits): Promise<Launched> {
    const { runsc, setpriv, host } = this.#installation;
    const archive = await packed(command, limits);
    const pipes = command.pipes ?? 0;
    // runsc looks at itself by its name, so it must have one where anybody may go.
    const own = { at: '/runsc', from: runsc };
    const { prefix, binds } = planMounts([own, ...(command.mounts ?? [])], setpriv !== undefined);
    const [reachable, ...mounts] = binds as [Mount, ...Mount[]];
    // The container's descriptors have the numbers that ours have: 3 on, the command's pipes first.
    const inside: LauncherDescriptors = {
      gate: 3 + pipes,
      files: 4 + pipes,
      collected: 5 + pipes,
      program: 6 + pipes,
    };
    const argv = [...limitArguments(limits), ...launcherArguments(command, inside)];
    const bundle = writeBundle(argv, command, limits, mounts, host, setpriv !== undefined);
    const remove = (): void => rmSync(bundle.folder, { recursive: true, force: true });
    try {
      const child = spawnSandbox(
        runsc,
        pipes,
        () => undefined,
        ({ collected }) => [
          ...prefix,
          ...(setpriv ? [setpriv, ...setprivArguments()] : []),
          reachable.from,
          '--rootless',
          '--network=none',
          '--ignore-cgroups',
          '--host-uds=none',
          '--overlay2=none',
          `--root=${bundle.state}`,
          'run',
          `--bundle=${bundle.folder}`,
          ...Array.from({ length: collected - 2 }, (_, i) => `--pass-fd=${3 + i}:${3 + i}`),
          path.basename(bundle.folder),
        ],
      );
      const watched = { ...limits, memoryBytes: limits.memoryBytes + OWN_MEMORY };
      const rootOf = (_: unknown, found: (pid: number) => void): void => {
        if (child.pid !== undefined) found(child.pid);
      };
      const launched = follow(child, archive, command, watched, rootOf, { keepsMemoryInFiles: true });
      void launched.over.then(remove);
      return launched;
    } catch (error) {
      remove();
      throw error;
    }
  }
}
