import type { Limits } from '../contract.ts';
import { follow, packed } from '../linux/follow.ts';
import type { Launched } from '../linux/follow.ts';
import type { HostFolders } from '../linux/host.ts';
import { launcherArguments, limitArguments } from '../linux/launcher.ts';
import type { AnyCommand } from '../linux/launcher.ts';
import { LinuxSandbox } from '../linux/linux-sandbox.ts';
import { planMounts } from '../linux/mounts.ts';
import { spawnSandbox } from '../linux/spawn.ts';
import { TemporaryBytes } from '../linux/temporary-bytes.ts';
import { GROUP, PASSWD, setprivArguments } from '../linux/user.ts';
import { bubblewrapArguments, privateArguments } from './arguments.ts';
import { compileFilter } from './seccomp.ts';
import type { Architecture } from './seccomp.ts';

interface Installation {
  bwrap: string;
  /** Present where we are root, which the sandbox must not be. */
  setpriv: string | undefined;
  host: HostFolders;
}

/**
 * Linux namespaces by bubblewrap: a process tree, a file system and a network (with nobody in it) of its own, no
 * capabilities, a filter of system calls, and limits set by the kernel and by a look from outside.
 */
export class Bubblewrap extends LinuxSandbox {
  readonly name = 'bubblewrap';
  readonly #installation: Installation;
  readonly #filter: TemporaryBytes;
  readonly #passwd = new TemporaryBytes(PASSWD);
  readonly #group = new TemporaryBytes(GROUP);

  constructor(installation: Installation, architecture: Architecture) {
    super();
    this.#installation = installation;
    this.#filter = new TemporaryBytes(compileFilter(architecture));
  }

  /** Once no command of it runs. */
  close(): void {
    for (const bytes of [this.#filter, this.#passwd, this.#group]) bytes.close();
  }

  protected async launch(command: AnyCommand, limits: Limits): Promise<Launched> {
    const { bwrap, setpriv, host } = this.#installation;
    const archive = await packed(command, limits);
    const mounts = planMounts(command.mounts ?? [], setpriv !== undefined);
    const child = spawnSandbox(
      bwrap,
      command.pipes ?? 0,
      (passing) => ({
        info: passing.pipe(),
        args: passing.pipe(),
        seccomp: passing.open(this.#filter.open()),
        passwd: passing.open(this.#passwd.open()),
        group: passing.open(this.#group.open()),
      }),
      (descriptors, own) => [
        ...mounts.prefix,
        // By its descriptor, because it may lie in a folder of ours where nobody else may go.
        ...(setpriv ? [setpriv, ...setprivArguments(), `/proc/self/fd/${descriptors.program}`] : [bwrap]),
        ...bubblewrapArguments(limits, own, host),
        ...limitArguments(limits),
        ...launcherArguments(command, descriptors),
      ],
    );
    return follow(child, archive, command, limits, ([info, args], found) => {
      args!.end(privateArguments(command, mounts.binds));
      // Bubblewrap says who is the first process of the sandbox after it has bound its life to ours.
      let message = '';
      let known = false;
      info!.setEncoding('utf8').on('data', (text: string) => {
        message += text;
        const pid = /"child-pid": (\d+),/.exec(message)?.[1];
        if (pid === undefined || known) return;
        known = true;
        found(Number(pid));
      });
    });
  }
}
