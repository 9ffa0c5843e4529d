import { GradusError, messageOf } from '../core/errors.ts';

/** Ends a command with what a person needs to know: the message, and where it failed; no stack trace for known errors. */
export function fail(error: unknown): never {
  if (error instanceof GradusError) console.error(`\n${error.boundary}/${error.type}: ${error.message}`);
  else console.error(error instanceof Error ? error.stack : messageOf(error));
  process.exit(1);
}
