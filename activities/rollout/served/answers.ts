import { createHash } from 'node:crypto';
import { z } from 'zod';
import { GradusError } from '../../../core/errors.ts';
import { badAnswer } from './connection.ts';

export const tokenId = z.int().nonnegative();
/** Nats; rounding may bring one of a certain token just above 0. */
export const logprob = z.number().max(1e-3);
export const versionSpans = z.array(
  z.object({ version: z.string(), start: z.int().nonnegative(), end: z.int().nonnegative() }),
);

/** Throws GradusError('policy', 'server-answer'), retryable, for a turn that something else than the policy ended. */
export function finishOf(url: string, reason: string): 'stop' | 'length' {
  if (reason === 'stop' || reason === 'length') return reason;
  throw badAnswer(`${url}: the server ended a request by "${reason}"`);
}

/** One digest over what a server says of its weights; null of a server that does not offer it. */
export async function checksumOf(
  ask: () => Promise<unknown>,
  read: (answer: unknown) => string,
): Promise<string | null> {
  try {
    return createHash('sha256')
      .update(read(await ask()))
      .digest('hex');
  } catch (error) {
    // Not there (404), or refused: versions differ in it, and it is no part of the API that is needed.
    const absent = error instanceof GradusError && ['unknown-model', 'server-request'].includes(error.type);
    if (absent) return null;
    throw error;
  }
}
