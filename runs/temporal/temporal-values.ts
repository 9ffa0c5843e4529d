import { defaultPayloadConverter } from '@temporalio/common';
import type { WorkflowExecutionDescription, WorkflowHandle } from '@temporalio/client';

// What Temporal's own messages say, as plain values. Whoever reaches the server can start workflows with whatever
// input: nothing is taken for granted of what they hold.

export type HistoryEvent = NonNullable<Awaited<ReturnType<WorkflowHandle['fetchHistory']>>['events']>[number];
export type DescribedActivity = NonNullable<WorkflowExecutionDescription['raw']['pendingActivities']>[number];
type Scheduled = NonNullable<HistoryEvent['activityTaskScheduledEventAttributes']>;
type Failure = NonNullable<DescribedActivity['lastFailure']>;
type Payloads = Scheduled['input'];
type Timestamp = HistoryEvent['eventTime'];
type Duration = Scheduled['heartbeatTimeout'];

/** Epoch milliseconds; null where there is no such moment. */
export const millisOf = (time: Timestamp): number | null =>
  time === null || time === undefined ? null : Number(time.seconds ?? 0) * 1000 + (time.nanos ?? 0) / 1e6;

/** Seconds; 0 where nothing is said. */
export const secondsOf = (duration: Duration): number =>
  Number(duration?.seconds ?? 0) + (duration?.nanos ?? 0) / 1e9;

/** The first of the values, where it can be read; else undefined. */
export function firstValue(payloads: Payloads): unknown {
  const payload = payloads?.payloads?.[0];
  if (!payload) return undefined;
  try {
    return defaultPayloadConverter.fromPayload(payload);
  } catch {
    // Of another converter, or damaged: whoever looks is told nothing rather than something wrong.
    return undefined;
  }
}

/** A field of what may be no object. */
export const fieldOf = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;

/** What became of an attempt: `silent`: no sign of life for as long as it may be. */
export interface Fault {
  kind: 'silent' | 'too-long' | 'nobody-came' | 'failed' | 'cancelled' | 'unknown';
  message: string;
}

/** Characters of a failure that are shown beside others. */
const LONGEST_MESSAGE = 500;
/** What `workers/failures.ts` calls an error that says what to do, such as `gradus.spec.invalid-data`. */
const OWN = /^gradus\.(?!infra\.unexpected$)/;

/** Decoded they are numbers, in JSON names. */
const TIMEOUTS: Record<string, Fault['kind']> = {
  '1': 'too-long',
  TIMEOUT_TYPE_START_TO_CLOSE: 'too-long',
  '2': 'nobody-came',
  TIMEOUT_TYPE_SCHEDULE_TO_START: 'nobody-came',
  '3': 'too-long',
  TIMEOUT_TYPE_SCHEDULE_TO_CLOSE: 'too-long',
  '4': 'silent',
  TIMEOUT_TYPE_HEARTBEAT: 'silent',
};

/**
 * What a failure says, in `most` characters: of a chain the innermost error of ours, which says what to do; where there is
 * none, what the chain began with.
 */
export function faultOf(failure: Failure | null | undefined, most = LONGEST_MESSAGE): Fault {
  if (!failure) return { kind: 'unknown', message: 'no reason was given' };
  const timeout = failure.timeoutFailureInfo;
  let root: Failure = failure;
  let own: Failure | null = null;
  let at: Failure | null | undefined = failure;
  for (let depth = 0; at && depth <= 32; depth++, at = at.cause) {
    root = at;
    if (OWN.test(at.applicationFailureInfo?.type ?? '')) own = at;
  }
  const said = (own ?? root).message ?? '';
  const message = said.length <= most ? said : `${said.slice(0, most - 1)}…`;
  if (timeout) return { kind: TIMEOUTS[String(timeout.timeoutType)] ?? 'unknown', message };
  return { kind: failure.canceledFailureInfo ? 'cancelled' : 'failed', message };
}
