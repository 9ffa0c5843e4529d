import { printable } from '../core/printable.ts';

/** A line on standard output. */
export const print = (text: string): void => void process.stdout.write(`${printable(text)}\n`);

/** A line on standard error, which leaves standard output to what another program reads. */
export const note = (text: string): void => void process.stderr.write(`${printable(text)}\n`);

/** Names what is damaged. The command goes on with the rest, and ends with 1: a script must not take that for all there is. */
export function noteDamage(damaged: readonly string[]): void {
  for (const message of damaged) note(`left out: ${message}`);
  if (damaged.length > 0) process.exitCode = 1;
}
