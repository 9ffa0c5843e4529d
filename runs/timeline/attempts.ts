import { faultOf, firstValue, millisOf, secondsOf } from '../temporal/temporal-values.ts';
import type { Fault, HistoryEvent, DescribedActivity } from '../temporal/temporal-values.ts';

/** An activity of a workflow, with what is known of its attempts. Times are epoch milliseconds of the server's clock. */
export interface AttemptedActivity {
  id: string;
  name: string;
  queue: string;
  /** What it was asked, decoded; undefined where that cannot be read. */
  input: unknown;
  /** Of one that is done. */
  result: unknown;
  scheduled: number;
  /** Of the last attempt; null while none has begun. */
  started: number | null;
  ended: number | null;
  /** Who runs or ran the last attempt; null where no history says. */
  worker: string | null;
  /** Attempts that have begun, with the one that counts. */
  attempts: number;
  state: 'done' | 'failed' | 'timed-out' | 'cancelled' | 'running' | 'waiting';
  /** Why it failed for good. */
  fault: Fault | null;
  lost: LostAttempts | null;
  /** What is said of one that runs. */
  live: LiveActivity | null;
}

/**
 * Attempts that came to nothing. A history has their number and how the last of them ended, and neither when they began
 * nor on which worker: what follows from that is given as bounds.
 */
interface LostAttempts {
  attempts: number;
  /** How the last of them ended. */
  fault: Fault;
  /** On which worker the last of them was: said only while another attempt is waited for. */
  worker: string | null;
  /** All of them were between these moments. */
  from: number;
  to: number;
  /** Whether the last of them ended at `to`, or before. */
  exact: boolean;
  /**
   * Seconds that went by until the attempt began that counts. At least: what Temporal waited to notice that the last was
   * lost, and between attempts. At most: since the activity was asked for, which includes the time that a first attempt
   * had waited for a worker.
   */
  seconds: { atLeast: number; atMost: number };
  /** Nothing counts yet: they go on growing. */
  open: boolean;
}

interface LiveActivity {
  /** Of the last sign of life. */
  beat: number | null;
  /** What it said last, in this attempt or in a lost one; undefined where it has said nothing that can be read. */
  said: unknown;
  /** When the next attempt is due. */
  next: number | null;
}

/** The activities of one execution in the order in which they were asked for. `now`: epoch milliseconds. */
export function activityAttempts(
  events: readonly HistoryEvent[],
  pending: readonly DescribedActivity[],
  now: number,
): AttemptedActivity[] {
  const all = new Map<string, { activity: AttemptedActivity; asked: Asked }>();
  for (const event of events) {
    const asked = event.activityTaskScheduledEventAttributes;
    if (!asked) continue;
    const activity: AttemptedActivity = {
      id: asked.activityId ?? '',
      name: asked.activityType?.name ?? '',
      queue: asked.taskQueue?.name ?? '',
      input: firstValue(asked.input),
      result: undefined,
      scheduled: millisOf(event.eventTime) ?? 0,
      started: null,
      ended: null,
      worker: null,
      attempts: 0,
      state: 'waiting',
      fault: null,
      lost: null,
      live: null,
    };
    all.set(String(event.eventId), { activity, asked });
  }
  for (const event of events) {
    const { activityTaskStartedEventAttributes: started } = event;
    if (started) {
      const of = all.get(String(started.scheduledEventId));
      if (!of) continue;
      const at = millisOf(event.eventTime);
      const attempts = started.attempt ?? 1;
      Object.assign(of.activity, {
        started: at,
        worker: started.identity || null,
        attempts,
        state: 'running',
      });
      if (attempts > 1)
        of.activity.lost = lostBefore(of.activity, of.asked, attempts - 1, started.lastFailure);
      continue;
    }
    const end = endOf(event);
    const of = end && all.get(String(end.scheduledEventId));
    if (!of) continue;
    Object.assign(of.activity, { ended: millisOf(event.eventTime), state: end.state, result: end.result });
    if (end.state === 'done' || end.state === 'cancelled') continue;
    of.activity.fault = faultOf(end.failure);
    of.activity.lost = lostForGood(of.activity, of.asked, end.failure);
  }
  for (const { activity, asked } of all.values()) {
    const about = activity.ended === null && pending.find(({ activityId }) => activityId === activity.id);
    if (about) addLive(activity, asked, about, now);
  }
  return [...all.values()].map(({ activity }) => activity);
}

type Asked = NonNullable<HistoryEvent['activityTaskScheduledEventAttributes']>;
type Failure = Parameters<typeof faultOf>[0];

interface End {
  scheduledEventId: unknown;
  state: AttemptedActivity['state'];
  result?: unknown;
  failure?: Failure;
}

function endOf(event: HistoryEvent): End | null {
  const {
    activityTaskCompletedEventAttributes: done,
    activityTaskFailedEventAttributes: failed,
    activityTaskTimedOutEventAttributes: late,
    activityTaskCanceledEventAttributes: cancelled,
  } = event;
  if (done) {
    return { scheduledEventId: done.scheduledEventId, state: 'done', result: firstValue(done.result) };
  }
  if (failed) return { scheduledEventId: failed.scheduledEventId, state: 'failed', failure: failed.failure };
  if (late) return { scheduledEventId: late.scheduledEventId, state: 'timed-out', failure: late.failure };
  return cancelled ? { scheduledEventId: cancelled.scheduledEventId, state: 'cancelled' } : null;
}

/** Of the attempts before the one that counts. */
function lostBefore(
  { scheduled, started }: AttemptedActivity,
  asked: Asked,
  attempts: number,
  failure: Failure,
): LostAttempts {
  const fault = faultOf(failure);
  const begun = started ?? scheduled;
  const last = pause(asked, attempts, failure);
  const atMost = (begun - scheduled) / 1000;
  return {
    attempts,
    fault,
    worker: null,
    from: scheduled,
    // A server's clock may have been set back.
    to: Math.max(scheduled, begun - last * 1000),
    exact: false,
    seconds: {
      atLeast: Math.min(atMost, silence(asked, fault) + pauses(asked, attempts - 1, failure) + last),
      atMost,
    },
    open: false,
  };
}

/** Of one that failed for good, which was the last of its attempts. */
function lostForGood(activity: AttemptedActivity, asked: Asked, failure: Failure): LostAttempts | null {
  const fault = faultOf(failure);
  const { scheduled, ended, attempts, worker } = activity;
  // What nobody came for was not lost by anybody.
  if (attempts === 0 || ended === null) return null;
  const atMost = (ended - scheduled) / 1000;
  const atLeast = Math.min(atMost, silence(asked, fault) + pauses(asked, attempts - 1, failure));
  return {
    attempts,
    fault,
    worker,
    from: scheduled,
    to: ended,
    exact: true,
    seconds: { atLeast, atMost },
    open: false,
  };
}

/** The history of what runs ends with its being asked for: the rest says the server of the moment. */
function addLive(activity: AttemptedActivity, asked: Asked, about: DescribedActivity, now: number): void {
  const attempt = about.attempt ?? 1;
  const running = !['0', '1', 'PENDING_ACTIVITY_STATE_SCHEDULED'].includes(String(about.state ?? 0));
  const worker = about.lastWorkerIdentity || null;
  activity.state = running ? 'running' : 'waiting';
  activity.attempts = running ? attempt : attempt - 1;
  activity.started = running ? millisOf(about.lastStartedTime) : null;
  activity.worker = running ? worker : null;
  activity.live = {
    beat: millisOf(about.lastHeartbeatTime),
    said: firstValue(about.heartbeatDetails),
    next: running ? null : (millisOf(about.nextAttemptScheduleTime) ?? millisOf(about.scheduledTime)),
  };
  if (attempt < 2) return;
  const lost = lostBefore(activity, asked, attempt - 1, about.lastFailure);
  const until = activity.started ?? now;
  const atMost = (until - activity.scheduled) / 1000;
  // An attempt is asked for when the pause after the one before it is over.
  const again = running ? millisOf(about.scheduledTime) : activity.live.next;
  const to = again === null ? null : again - pause(asked, attempt - 1, about.lastFailure) * 1000;
  activity.lost = {
    ...lost,
    ...(to !== null && { to: Math.max(activity.scheduled, to), exact: true }),
    ...(!running && {
      worker,
      open: true,
      seconds: {
        atLeast: Math.min(atMost, silence(asked, lost.fault) + pauses(asked, attempt - 2, about.lastFailure)),
        atMost,
      },
    }),
  };
}

/** Seconds that an attempt that is found out by its silence has been silent for, or that has taken too long has taken. */
function silence({ heartbeatTimeout, startToCloseTimeout }: Asked, { kind }: Fault): number {
  if (kind === 'silent') return secondsOf(heartbeatTimeout);
  return kind === 'too-long' ? secondsOf(startToCloseTimeout) : 0;
}

/** Seconds between an attempt, counted from 1, and the next one. */
function pause({ retryPolicy }: Asked, attempt: number, failure?: Failure): number {
  const asked = failure?.applicationFailureInfo?.nextRetryDelay;
  if (asked) return secondsOf(asked);
  const first = secondsOf(retryPolicy?.initialInterval);
  const most = secondsOf(retryPolicy?.maximumInterval) || Infinity;
  return Math.min(most, first * (retryPolicy?.backoffCoefficient ?? 1) ** (attempt - 1));
}

/**
 * Seconds between the first so many attempts and those after them, as the policy has them. Where the last failure says when
 * to come again those before it may have said so, too, and sooner than the policy: nothing is known of them.
 */
function pauses(asked: Asked, attempts: number, last: Failure): number {
  if (last?.applicationFailureInfo?.nextRetryDelay) return 0;
  let sum = 0;
  // Thousands of attempts wait for the longest pause each.
  const growing = Math.min(attempts, 64);
  for (let attempt = 1; attempt <= growing; attempt++) sum += pause(asked, attempt);
  return sum + (attempts - growing) * pause(asked, attempts);
}
