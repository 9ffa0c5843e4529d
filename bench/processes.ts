import { readdirSync, readFileSync } from 'node:fs';

/**
 * The sum of the most memory (resident set) that each process ever held which this process has started, directly or
 * not, and which still runs, bytes. At least what all held at once: their peaks need not fall together, and what they
 * share is counted for each. Linux only; 0 elsewhere.
 */
export const peakBytesOfDescendants = (): number =>
  sum(descendants().map(({ status }) => bytes(status, 'VmHWM')));

/** The same of what each holds now. */
export const bytesOfDescendants = (): number =>
  sum(descendants().map(({ status }) => bytes(status, 'VmRSS')));

/**
 * The memory of a process and of each that descends from it, bytes: of pages that several share, to each its part (PSS), so
 * that a sum counts them once. Linux only; nothing elsewhere.
 */
export const shareBytesOfDescendants = (of: number): number[] =>
  [of, ...descendants(of).map(({ pid }) => pid)]
    .map((pid) => bytes(textOf(`/proc/${pid}/smaps_rollup`), 'Pss'))
    .filter((share) => share > 0);

/** Linux tells processor time in hundredths of a second. */
const TICK_MS = 10;

/**
 * Processor time that this process and those that it has started, directly or not, and which still run have had so far,
 * with all their threads, milliseconds: what work takes, and not what a busy machine withheld. Linux only; this process
 * alone elsewhere.
 */
export function processorMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000 + sum(descendants().map(({ pid }) => ticks(pid))) * TICK_MS;
}

function ticks(pid: number): number {
  // What follows the name of the program, which is in brackets and may hold anything.
  const fields = textOf(`/proc/${pid}/stat`).split(') ').at(-1)!.split(' ');
  return Number(fields[11] ?? 0) + Number(fields[12] ?? 0);
}

/** `status`: as Linux tells it. */
function descendants(of = process.pid): { pid: number; status: string }[] {
  if (process.platform !== 'linux') return [];
  const statuses = new Map(
    readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map((name) => [Number(name), textOf(`/proc/${name}/status`)]),
  );
  const isDescendant = (pid: number): boolean => {
    const parent = /^PPid:\s+(\d+)/m.exec(statuses.get(pid) ?? '')?.[1];
    return parent !== undefined && (Number(parent) === of || isDescendant(Number(parent)));
  };
  return [...statuses].filter(([pid]) => isDescendant(pid)).map(([pid, status]) => ({ pid, status }));
}

const bytes = (status: string, key: string): number =>
  1024 * Number(new RegExp(`^${key}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? 0);

const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);

/** Empty for a process that has just ended. */
function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) return '';
    throw error;
  }
}
