import {
  ChildWorkflowCancellationType,
  getExternalWorkflowHandle,
  isCancellation,
  log,
  ParentClosePolicy,
  startChild,
  workflowInfo,
} from '@temporalio/workflow';
import type { SignalDefinition } from '@temporalio/workflow';
import { WorkflowExecutionAlreadyStartedError } from '@temporalio/common';
import { ids } from '../../core/names.ts';
import type { VerificationSpec } from '../../core/schema/verification.ts';
import { ladderReopened } from '../control/messages.ts';
import type { ladder } from '../ladder/ladder.ts';
import { searchAttributes } from '../search-attributes.ts';

/** How often a ladder may end while a run that was reset takes it over. */
const MOST_LADDERS = 5;

/**
 * Starts the ladder of a run, which outlives it: verdicts may come days later. A run that was reset goes on with the one
 * that it has, also where that has been told that the run is over; where it has just ended, with another one.
 */
export async function openLadder(run: string, verification: VerificationSpec): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await startChild<typeof ladder>('ladder', {
        args: [{ run, verification, firstRunId: workflowInfo().firstExecutionRunId }],
        workflowId: ids.ladder(run),
        parentClosePolicy: ParentClosePolicy.ABANDON,
        // A run that is cancelled tells it to end; a cancellation would cut off what it has to write down.
        cancellationType: ChildWorkflowCancellationType.ABANDON,
        typedSearchAttributes: searchAttributes({ run, stage: 'ladder' }),
      });
      return;
    } catch (error) {
      if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
    }
    try {
      await getExternalWorkflowHandle(ids.ladder(run)).signal(ladderReopened);
      return;
    } catch (error) {
      if (isCancellation(error) || attempt === MOST_LADDERS) throw error;
      log.info('the ladder of an earlier time has just ended', { reason: String(error) });
    }
  }
}

/** Tells a ladder something of its run; null is the one that a run does not have. */
export async function tellLadder(ladderId: string | null, signal: SignalDefinition): Promise<void> {
  if (ladderId === null) return;
  try {
    await getExternalWorkflowHandle(ladderId).signal(signal);
  } catch (error) {
    if (isCancellation(error)) throw error;
    log.info('the ladder has ended before its run', { reason: String(error) });
  }
}
