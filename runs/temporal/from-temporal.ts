import type { Client } from '@temporalio/client';
import { temporalError } from './temporal-away.ts';

/** What is read of Temporal within this time. Throws as `temporalError` has it. */
export async function fromTemporal<T>(
  temporal: Client,
  patienceMs: number,
  read: () => Promise<T>,
): Promise<T> {
  try {
    return await temporal.withDeadline(Date.now() + patienceMs, read);
  } catch (error) {
    throw temporalError(temporal, error);
  }
}
