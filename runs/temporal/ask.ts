import type { Client } from '@temporalio/client';
import type { Progress } from '../../workflows/control/messages.ts';
import type { LadderStatus } from '../../workflows/ladder/ladder-state.ts';
import { ids } from '../../core/names.ts';
import { isLate } from './temporal-away.ts';

/** A query waits for a worker. Where there is none nobody is to wait: what else is known is shown. */
const PATIENCE_MS = 400;

/** What a workflow answers to a query; null where nobody does in time, whatever the reason. */
export async function askWorkflow<T>(
  temporal: Client,
  workflowId: string,
  query: string,
  patienceMs = PATIENCE_MS,
): Promise<T | null> {
  try {
    return await temporal.withDeadline(Date.now() + patienceMs, () =>
      temporal.workflow.getHandle(workflowId).query<T>(query),
    );
  } catch {
    // Away, too busy, of another version, or no workflow of ours: all the same to who looks.
    return null;
  }
}

const TRIES = 3;

/**
 * What a workflow answers to a query, for who cannot go on without it. Temporal gives a query to the worker that had the
 * workflow last, and one that is lost there, as when the workflow ends just then, times out after ten seconds: it is asked
 * again, `TRIES` times in all. Throws what the last one threw.
 */
export async function queryWorkflow<T>(temporal: Client, workflowId: string, query: string): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await temporal.workflow.getHandle(workflowId).query<T>(query);
    } catch (error) {
      if (!isLate(error) || attempt === TRIES) throw error;
    }
  }
}

/** What a run says of itself; null where it cannot just now. */
export async function askProgress(
  temporal: Client,
  workflowId: string,
  patienceMs?: number,
): Promise<Progress | null> {
  const progress = await askWorkflow<Progress | undefined>(temporal, workflowId, 'progress', patienceMs);
  return typeof progress?.run === 'string' && typeof progress.status === 'string' ? progress : null;
}

/** The ladder of a run, by the run's name. */
export async function askLadder(
  temporal: Client,
  run: string,
  patienceMs?: number,
): Promise<LadderStatus | null> {
  const status = await askWorkflow<LadderStatus | undefined>(temporal, ids.ladder(run), 'ladder', patienceMs);
  return typeof status?.totals === 'object' ? status : null;
}
