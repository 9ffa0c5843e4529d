import type { Client } from '@temporalio/client';
import { temporalError } from './temporal-away.ts';

/** A server that answers nothing for so long hangs, however much there is to read. */
export const ANSWERS_WITHIN_MS = 3000;

/**
 * What is read of Temporal within this time. `answersWithinMs` is how long the server is waited for that answers nothing
 * at all, where reading may take much longer than that. Throws as `temporalError` has it.
 */
export async function fromTemporal<T>(
  temporal: Client,
  patienceMs: number,
  read: () => Promise<T>,
  { answersWithinMs }: { answersWithinMs?: number } = {},
): Promise<T> {
  try {
    const [all] = await Promise.all([
      temporal.withDeadline(Date.now() + patienceMs, read),
      answersWithinMs !== undefined &&
        temporal.withDeadline(Date.now() + answersWithinMs, () => temporal.workflowService.getSystemInfo({})),
    ]);
    return all;
  } catch (error) {
    throw temporalError(temporal, error);
  }
}
