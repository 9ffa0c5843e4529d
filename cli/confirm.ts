import { createInterface } from 'node:readline';
import { GradusError } from '../core/errors.ts';
import { note } from './printable.ts';

/**
 * Asks a person for a name before something is done that cannot be taken back; `given` is one that was given with the
 * command. Throws GradusError('spec', 'not-confirmed') for another one.
 */
export async function confirmName(name: string, given: string | undefined, what: string): Promise<void> {
  if (given === undefined) note(`${what} Type ${JSON.stringify(name)} to confirm:`);
  const answer = given ?? (await firstLine());
  if (answer === name) return;
  throw new GradusError(
    'spec',
    'not-confirmed',
    `${answer === null ? `nothing was typed (--yes ${name} says it in a script)` : `${JSON.stringify(answer)} is not ${JSON.stringify(name)}`}: nothing was done`,
  );
}

async function firstLine(): Promise<string | null> {
  const lines = createInterface({ input: process.stdin });
  try {
    for await (const line of lines) return line.trim();
    return null;
  } finally {
    lines.close();
  }
}
