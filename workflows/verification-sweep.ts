import {
  condition,
  getExternalWorkflowHandle,
  isCancellation,
  log,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import type { Budget } from '../core/ladder/budget.ts';
import type { LedgerEntry } from '../core/ladder/ledger.ts';
import { ids } from '../core/names.ts';
import { ladderActivities, sweepActivities, verdictActivities } from './activities.ts';
import { ladderSwept, verdictArrived } from './messages.ts';

/** As a person writes it into a schedule. */
export interface SweepInput {
  run: string;
  /** Only what was deferred for want of this one's budget. */
  verifier?: string;
  budget: Budget;
  /** Computations in flight at once; 4 where it is absent. */
  concurrency?: number;
  /** How long it waits for verdicts, seconds; an hour where it is absent. */
  deadlineSeconds?: number;
}

export interface SweepResult {
  asked: number;
  arrived: number;
}

const DEFAULTS = { concurrency: 4, deadlineSeconds: 3600 };

/**
 * Works through the candidates that a run deferred, best value first, under a budget of its own; meant to be started by
 * a Temporal Schedule. The run's next step finds the verdicts in the store.
 */
export async function verificationSweep(input: SweepInput): Promise<SweepResult> {
  const { run, verifier, budget } = input;
  const { concurrency, deadlineSeconds } = { ...DEFAULTS, ...input };
  const writer = `sweep-${workflowInfo().runId}`;
  const entries: LedgerEntry[] = [];
  const waiting = new Set<string>();
  setHandler(verdictArrived, ({ verifier, version, digest, result, spent }) => {
    if (!waiting.delete(digest)) return;
    entries.push({ kind: 'verdict', stage: 'sweep', verifier, version, digest, result, spent, late: true });
  });

  const planned = await sweepActivities.planSweep({ run, ...(verifier && { verifier }), budget, writer });
  const { asks, digests } = planned;
  if (asks === null) return { asked: 0, arrived: 0 };
  const end = Date.now() + deadlineSeconds * 1000;
  let asked = 0;
  while (asked < digests.length && Date.now() < end) {
    const to = Math.min(digests.length, asked + concurrency - waiting.size);
    for (const digest of digests.slice(asked, to)) waiting.add(digest);
    await verdictActivities.requestVerdicts({ asks, from: asked, to, requester: workflowInfo().workflowId });
    asked = to;
    await condition(() => waiting.size < concurrency, Math.max(1, end - Date.now()));
  }
  await condition(() => waiting.size === 0, Math.max(1, end - Date.now()));
  const found = entries.splice(0);
  for (let i = 0; i * PAGE < found.length; i++) {
    const page = found.slice(i * PAGE, (i + 1) * PAGE);
    await ladderActivities.keepLedger({ run, ledger: { writer, sequence: i + 1 }, entries: page });
  }
  await tell(run, found);
  return { asked, arrived: found.length };
}

const PAGE = 100;

async function tell(run: string, found: readonly LedgerEntry[]): Promise<void> {
  const digests = found.flatMap((entry) => (entry.kind === 'verdict' ? [entry.digest] : []));
  try {
    await getExternalWorkflowHandle(ids.ladder(run)).signal(ladderSwept, digests);
  } catch (error) {
    if (isCancellation(error)) throw error;
    log.info('the run has ended; what was found is in the store', { run, reason: String(error) });
  }
}
