import { readdirSync, readFileSync } from 'node:fs';

const O_CLOEXEC = 0o2000000;

/**
 * Descriptors that whoever started us left open and that our children would have, too, from 3 on: Node opens its own so
 * that they close. The terminal, a log or a socket of a supervisor may be among them.
 */
export function inheritedDescriptors(): number[] {
  return readdirSync('/proc/self/fd')
    .map(Number)
    .filter((descriptor) => descriptor > 2 && !closesOnExec(descriptor));
}

function closesOnExec(descriptor: number): boolean {
  try {
    const flags = /^flags:\s+(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${descriptor}`, 'utf8'))?.[1];
    return (Number.parseInt(flags ?? '0', 8) & O_CLOEXEC) !== 0;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return true; // the one by which the folder was read
    throw error;
  }
}
