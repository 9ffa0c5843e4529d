import { GradusError, messageOf } from '../core/errors.ts';
import { exit } from './exit.ts';
import { note } from './printable.ts';

/** Ends a command with what a person needs to know: the message, and where it failed; no stack trace for known errors. */
export async function fail(error: unknown): Promise<never> {
  if (error instanceof GradusError) note(`\n${error.boundary}/${error.type}: ${error.message}`);
  else note(error instanceof Error ? (error.stack ?? error.message) : messageOf(error));
  return exit(1);
}
