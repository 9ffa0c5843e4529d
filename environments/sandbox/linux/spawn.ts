import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { inheritedDescriptors } from './inherited.ts';
import type { LauncherDescriptors } from './launcher.ts';

/** Linux's O_PATH: a name, not the right to read. */
const O_PATH = 0x200000;

/** Gives the child a descriptor, and says which number it has there. `close` it here once it has been passed. */
export interface Passing {
  pipe(): number;
  open(descriptor: number): number;
}

/**
 * Starts a sandbox: with nothing of our environment and none of the descriptors that whoever started us left open, with
 * the command's own pipes from 3 on, the launcher's after them, and what `further` passes.
 */
export function spawnSandbox<Further>(
  program: string,
  pipes: number,
  further: (passing: Passing) => Further,
  argv: (descriptors: LauncherDescriptors, further: Further) => readonly string[],
): ChildProcess {
  const ours: number[] = [];
  const stdio: ('pipe' | 'ignore' | number)[] = Array<'pipe'>(3 + pipes).fill('pipe');
  const passing: Passing = {
    pipe: () => stdio.push('pipe') - 1,
    open: (descriptor) => {
      ours.push(descriptor);
      return stdio.push(descriptor) - 1;
    },
  };
  try {
    const descriptors = {
      gate: passing.pipe(),
      files: passing.pipe(),
      collected: passing.pipe(),
      program: passing.open(openSync(program, O_PATH)),
    };
    const others = further(passing);
    const nothing = openSync('/dev/null', 'r');
    ours.push(nothing);
    for (const inherited of inheritedDescriptors()) {
      while (stdio.length <= inherited) stdio.push('ignore');
      if (stdio[inherited] === 'ignore') stdio[inherited] = nothing;
    }
    const [command, ...rest] = argv(descriptors, others) as [string, ...string[]];
    // Without an environment: in the sandbox, /proc/1/environ is the sandbox's own.
    return spawn(command, rest, { env: {}, cwd: '/', stdio });
  } finally {
    for (const descriptor of ours) closeSync(descriptor);
  }
}
