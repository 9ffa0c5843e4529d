import { readdirSync, readFileSync } from 'node:fs';

/**
 * The sum of the most memory (resident set) that each process ever held which this process has started, directly or
 * not, and which still runs. At least what all held at once: their peaks need not fall together, and what they share is
 * counted for each. Linux only; 0 elsewhere.
 */
export function peakBytesOfDescendants(of = process.pid): number {
  if (process.platform !== 'linux') return 0;
  const parents = new Map<number, { parent: number; peakBytes: number }>();
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const status = statusOf(name);
    const parent = /^PPid:\s+(\d+)/m.exec(status)?.[1];
    const peak = /^VmHWM:\s+(\d+) kB/m.exec(status)?.[1];
    if (parent && peak) parents.set(Number(name), { parent: Number(parent), peakBytes: Number(peak) * 1024 });
  }
  const isDescendant = (pid: number): boolean => {
    const parent = parents.get(pid)?.parent;
    return parent !== undefined && (parent === of || isDescendant(parent));
  };
  return [...parents].reduce((sum, [pid, { peakBytes }]) => sum + (isDescendant(pid) ? peakBytes : 0), 0);
}

/** Empty for a process that has just ended. */
function statusOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/status`, 'utf8');
  } catch (error) {
    if (['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) return '';
    throw error;
  }
}
