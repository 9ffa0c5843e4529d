import { printable } from '../core/printable.ts';

/** A line on standard output. */
export const print = (text: string): void => void process.stdout.write(`${printable(text)}\n`);

/** A line on standard error, which leaves standard output to what another program reads. */
export const note = (text: string): void => void process.stderr.write(`${printable(text)}\n`);
