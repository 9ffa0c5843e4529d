import { GradusError, messageOf } from '../core/errors.ts';
import { note } from './printable.ts';

/** Ends a command with what a person needs to know: the message, and where it failed; no stack trace for known errors. */
export function fail(error: unknown): never {
  if (error instanceof GradusError) note(`\n${error.boundary}/${error.type}: ${error.message}`);
  else note(error instanceof Error ? (error.stack ?? error.message) : messageOf(error));
  process.exit(1);
}
