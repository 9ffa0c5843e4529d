import { condition, workflowInfo } from '@temporalio/workflow';
import { entriesOf } from '../../core/ladder/arrivals.ts';
import type { Arrived } from '../../core/ladder/requests.ts';
import { ids } from '../../core/names.ts';
import type { BlobRef } from '../../core/refs.ts';
import type { Spent } from '../../core/tier-contract.ts';
import { verdictActivities } from '../activities.ts';
import { writeEntries } from '../ladder/write-entries.ts';
import { listen } from '../control/listen.ts';
import { arrivedShape } from '../control/message-shapes.ts';
import { verdictArrived } from '../control/messages.ts';
import { parentOf } from '../control/refuse.ts';

/** Epoch milliseconds; null where it waits as long as it takes. */
export type Deadline = number | null;

/** The ledger that is told what came, and as whose verdicts they stand there. */
export interface PageLedger {
  run: string;
  stage: string;
  /** What the writers of the pages are called; the execution's id is added. */
  writer: string;
}

export interface VerdictPage {
  asks: BlobRef;
  /** The page, within the asks. */
  from: number;
  to: number;
  /** Computations in flight at once. */
  concurrency: number;
  deadline: Deadline;
  ledger?: PageLedger;
}

/** What verdicts came to. */
export interface VerdictsTaken extends Spent {
  /** Computed for this asker. */
  computed: number;
}

/** Waits for a page of verdicts, of a workflow that wants more than one history can hear of. */
export async function verdictPage(page: VerdictPage): Promise<VerdictsTaken> {
  parentOf();
  const { asks, from, to, concurrency, deadline, ledger } = page;
  const arrived = new Map<string, Arrived>();
  listen(verdictArrived, arrivedShape, (one) => void arrived.set(ids.verdict(one), one));
  const until = (fulfilled: () => boolean): Promise<unknown> =>
    deadline === null ? condition(fulfilled) : condition(fulfilled, Math.max(1, deadline - Date.now()));
  const late = (): boolean => deadline !== null && Date.now() >= deadline;
  const { workflowId, runId } = workflowInfo();
  for (let asked = from; asked < to && !late();) {
    const next = Math.min(to, from + arrived.size + concurrency);
    await verdictActivities.requestVerdicts({ asks, from: asked, to: next, requester: workflowId });
    asked = next;
    await until(() => asked - from - arrived.size < concurrency);
  }
  await until(() => arrived.size === to - from);
  const came = [...arrived.values()];
  if (ledger) {
    const { run, stage, writer } = ledger;
    const entries = came.flatMap((one) => entriesOf(one, { stage, late: false }));
    // What is learnt must not depend on what was measured.
    await writeEntries(run, `${writer}-${runId}`, entries, { heard: false });
  }
  // What somebody else has caused costs nothing here.
  const paid = came.flatMap(({ spent }) => spent ?? []);
  return {
    computed: paid.length,
    seconds: paid.reduce((sum, { seconds }) => sum + seconds, 0),
    usd: paid.reduce((sum, { usd }) => sum + usd, 0),
  };
}
