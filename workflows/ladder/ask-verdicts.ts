import {
  executeChild,
  getExternalWorkflowHandle,
  isCancellation,
  log,
  workflowInfo,
} from '@temporalio/workflow';
import { ids } from '../../core/names.ts';
import type { BlobRef } from '../../core/refs.ts';
import { runOfThis } from './ask.ts';
import { listen } from '../control/listen.ts';
import { openQuestion } from '../control/message-shapes.ts';
import { decided, questionAsked } from '../control/messages.ts';
import type { Deadline, PageLedger, VerdictsTaken, verdictPage } from '../verification/verdict-page.ts';

/** A verdict takes up to ten events of the history that waits for it: no more in one than keep that short. */
const PAGE = 200;

/**
 * Asks for `count` verdicts, `concurrency` at a time, and waits until all have come, or until the deadline where there
 * is one. What came is in the store, and in the ledger that is named. A child workflow waits for each page of them, so
 * that no history grows with their number.
 */
export async function askVerdicts(
  asks: BlobRef,
  count: number,
  {
    concurrency,
    deadlineSeconds,
    ledger,
  }: { concurrency: number; deadlineSeconds?: number; ledger?: PageLedger },
): Promise<VerdictsTaken> {
  if (runOfThis() === null) answerPages();
  const deadline: Deadline = deadlineSeconds === undefined ? null : Date.now() + deadlineSeconds * 1000;
  const taken: VerdictsTaken = { computed: 0, seconds: 0, usd: 0 };
  const late = (): boolean => deadline !== null && Date.now() >= deadline;
  for (let from = 0; from < count && !late(); from += PAGE) {
    const to = Math.min(count, from + PAGE);
    const page = await executeChild<typeof verdictPage>('verdictPage', {
      args: [{ asks, from, to, concurrency, deadline, ...(ledger && { ledger }) }],
      workflowId: ids.verdictPage(workflowInfo().workflowId, from / PAGE),
    });
    taken.computed += page.computed;
    taken.seconds += page.seconds;
    taken.usd += page.usd;
  }
  return taken;
}

/** A page that meets damage asks whoever started it. Without a run there is no person to pass that on to. */
function answerPages(): void {
  listen(questionAsked, openQuestion, async ({ id, asker }) => {
    try {
      await getExternalWorkflowHandle(asker).signal(decided, { question: id, answer: 'stop' });
    } catch (error) {
      if (isCancellation(error)) throw error;
      log.info('who asked has ended', { asker, reason: String(error) });
    }
  });
}
