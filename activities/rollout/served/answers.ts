import { z } from 'zod';
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
