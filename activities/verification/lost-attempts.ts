import type { WorkflowHandle } from '@temporalio/client';
import type { LostAttempts } from '../../core/ladder/ledger.ts';

type HistoryEvent = NonNullable<Awaited<ReturnType<WorkflowHandle['fetchHistory']>>['events']>[number];

/**
 * What a workflow's own history knows of the attempts at an activity that came to nothing, once it is over; null where
 * there were none. How long each of them took it does not say.
 */
export function lostAttempts(events: readonly HistoryEvent[], activity: string): LostAttempts | null {
  const scheduled = events.find(
    (event) => event.activityTaskScheduledEventAttributes?.activityType?.name === activity,
  );
  const of = (other: { scheduledEventId?: unknown } | null | undefined): boolean =>
    other != null && String(other.scheduledEventId) === String(scheduled?.eventId);
  const started = events.find((event) => of(event.activityTaskStartedEventAttributes));
  const begun = started?.activityTaskStartedEventAttributes;
  if (!scheduled || !started || !begun) return null;
  const failed = events.find(
    (event) => of(event.activityTaskFailedEventAttributes) || of(event.activityTaskTimedOutEventAttributes),
  );
  const attempts = (begun.attempt ?? 1) - (failed ? 0 : 1);
  if (attempts === 0) return null;
  const failure =
    failed?.activityTaskFailedEventAttributes?.failure ??
    failed?.activityTaskTimedOutEventAttributes?.failure ??
    begun.lastFailure;
  return {
    attempts,
    seconds: secondsOf(failed ?? started) - secondsOf(scheduled),
    reason: failure?.message ?? 'not said',
  };
}

const secondsOf = ({ eventTime }: HistoryEvent): number =>
  Number(eventTime?.seconds ?? 0) + (eventTime?.nanos ?? 0) / 1e9;
