import {
  condition,
  getExternalWorkflowHandle,
  isCancellation,
  log,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import { entriesOf } from '../core/ladder/arrivals.ts';
import { emptyAccount, hasRoom, reserve, settle } from '../core/ladder/budget.ts';
import type { Budget } from '../core/ladder/budget.ts';
import type { LedgerEntry } from '../core/ladder/ledger.ts';
import type { Swept } from '../core/ladder/requests.ts';
import { ids } from '../core/names.ts';
import type { Spent } from '../core/tier-contract.ts';
import { sweepActivities, verdictActivities } from './activities.ts';
import { keepEntries } from './keep-entries.ts';
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
  spent: Spent;
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
  const found: Swept[] = [];
  const waiting = new Map<string, Spent>();
  let account = emptyAccount();
  setHandler(verdictArrived, (arrived) => {
    const promised = waiting.get(arrived.digest);
    if (promised === undefined) return;
    waiting.delete(arrived.digest);
    account = settle(account, promised, arrived.spent);
    found.push({ verifier: arrived.verifier, digest: arrived.digest });
    entries.push(...entriesOf(arrived, { stage: 'sweep', late: true }));
  });

  const planned = await sweepActivities.planSweep({ run, ...(verifier && { verifier }), budget, writer });
  const { asks, digests, costs } = planned;
  const end = Date.now() + deadlineSeconds * 1000;
  let asked = 0;
  while (asked < digests.length && Date.now() < end) {
    await condition(() => waiting.size === 0 || fits(asked), left());
    let to = asked;
    for (; to < digests.length && fits(to); to++) {
      waiting.set(digests[to]!, costs[to]!);
      account = reserve(account, costs[to]!);
    }
    if (to === asked) break;
    const requester = workflowInfo().workflowId;
    await verdictActivities.requestVerdicts({ asks: asks!, from: asked, to, requester });
    asked = to;
  }
  await condition(() => waiting.size === 0, left());
  await keepEntries(run, writer, entries);
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
