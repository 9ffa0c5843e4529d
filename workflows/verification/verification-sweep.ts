import {
  condition,
  getExternalWorkflowHandle,
  isCancellation,
  log,
  workflowInfo,
} from '@temporalio/workflow';
import { entriesOf } from '../../core/ladder/arrivals.ts';
import { emptyAccount, hasRoom, reserve, settle } from '../../core/ladder/budget.ts';
import type { Budget } from '../../core/ladder/budget.ts';
import type { LedgerEntry } from '../../core/ladder/ledger.ts';
import type { Swept } from '../../core/ladder/requests.ts';
import { ids } from '../../core/names.ts';
import type { Spent } from '../../core/tier-contract.ts';
import { sweepActivities, verdictActivities } from '../activities.ts';
import { writeEntries } from '../ladder/write-entries.ts';
import { listen } from '../control/listen.ts';
import { arrivedShape } from '../control/message-shapes.ts';
import { ladderSwept, verdictArrived } from '../control/messages.ts';

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
  spent: Spent;
}

/**
 * Works through the candidates that a run deferred, best value first, under a budget of its own; meant to be started by
 * a Temporal Schedule. Fails, non-retryable and before anything is spent, when its input is wrong. The run's next step finds the verdicts in the store.
 */
export async function verificationSweep(written: SweepInput): Promise<SweepResult> {
  const { run, verifier, budget, concurrency, deadlineSeconds } = await sweepActivities.openSweep(written);
  const writer = `sweep-${workflowInfo().runId}`;
  const entries: LedgerEntry[] = [];
  const found: Swept[] = [];
  /** What was promised to each, by the id of the workflow that computes it. */
  const waiting = new Map<string, Spent>();
  let account = emptyAccount();
  listen(verdictArrived, arrivedShape, (arrived) => {
    const promised = waiting.get(ids.verdict(arrived));
    if (promised === undefined) return;
    waiting.delete(ids.verdict(arrived));
    account = settle(account, promised, arrived.spent);
    found.push({ verifier: arrived.verifier, digest: arrived.digest });
    entries.push(...entriesOf(arrived, { stage: 'sweep', late: true }));
  });

  const planned = await sweepActivities.planSweep({ run, ...(verifier && { verifier }), budget, writer });
  const { asks, names, costs } = planned;
  const end = Date.now() + deadlineSeconds * 1000;
  let asked = 0;
  for (let next = 0; next < names.length && Date.now() < end;) {
    await condition(() => waiting.size === 0 || fits(next), left());
    const from = next;
    for (; next < names.length && fits(next); next++) {
      waiting.set(names[next]!, costs[next]!);
      account = reserve(account, costs[next]!);
    }
    if (next > from) {
      const requester = workflowInfo().workflowId;
      await verdictActivities.requestVerdicts({ asks: asks!, from, to: next, requester });
      asked += next - from;
    } else if (waiting.size === 0) {
      // Others took more than they had declared: what has no place now may not stand before what has.
      next++;
    }
  }
  await condition(() => waiting.size === 0, left());
  await writeEntries(run, writer, entries, { heard: true });
  if (found.length > 0) await tell(run, found);
  return { asked, arrived: found.length, spent: { seconds: account.seconds, usd: account.usd } };

  /** By what the computations so far have really taken. */
  function fits(at: number): boolean {
    return waiting.size < concurrency && hasRoom(budget, account, costs[at]!);
  }
  function left(): number {
    return Math.max(1, end - Date.now());
  }
}

async function tell(run: string, found: readonly Swept[]): Promise<void> {
  try {
    await getExternalWorkflowHandle(ids.ladder(run)).signal(ladderSwept, [...found]);
  } catch (error) {
    if (isCancellation(error)) throw error;
    log.info('the run has ended; what was found is in the store', { run, reason: String(error) });
  }
}
