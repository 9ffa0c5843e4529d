import type { Client } from '@temporalio/client';
import { GradusError, isA, messageOf } from '../core/errors.ts';

/** What is read of Temporal within this time. Throws GradusError('infra', 'temporal-unreachable') where it is away. */
export async function fromTemporal<T>(
  temporal: Client,
  patienceMs: number,
  read: () => Promise<T>,
): Promise<T> {
  try {
    return await temporal.withDeadline(Date.now() + patienceMs, read);
  } catch (cause) {
    if (isA(cause, GradusError)) throw cause;
    throw new GradusError('infra', 'temporal-unreachable', `Temporal does not answer: ${messageOf(cause)}`, {
      retryable: true,
      cause,
    });
  }
}
