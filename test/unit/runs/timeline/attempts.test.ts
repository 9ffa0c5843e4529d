import { expect, test } from 'vitest';
import { activityAttempts } from '../../../../runs/timeline/attempts.ts';
import type { HistoryEvent } from '../../../../runs/temporal/temporal-values.ts';

const T0 = 1_795_400_000;
const event = (eventId: number, seconds: number, attributes: object): HistoryEvent =>
  ({ eventId, eventTime: { seconds: T0 + seconds, nanos: 0 }, ...attributes }) as unknown as HistoryEvent;
const asked = event(5, 0, {
  activityTaskScheduledEventAttributes: {
    activityId: '1',
    activityType: { name: 'callTool' },
    taskQueue: { name: 'gradus-tool' },
    heartbeatTimeout: { seconds: 6 },
    startToCloseTimeout: { seconds: 3600 },
    retryPolicy: { initialInterval: { seconds: 1 }, backoffCoefficient: 2, maximumInterval: { seconds: 4 } },
  },
});
const begun = (seconds: number, attempt: number, lastFailure?: object): HistoryEvent =>
  event(6, seconds, {
    activityTaskStartedEventAttributes: { scheduledEventId: 5, attempt, identity: '7@there', lastFailure },
  });
const only = (...events: HistoryEvent[]) => activityAttempts([asked, ...events], [], (T0 + 1000) * 1000)[0]!;

test('of many attempts that failed the pauses between them are counted, which grow up to a limit', () => {
  // 1 + 2 + 4 + 4 s of pauses.
  const { lost } = only(begun(12, 5, { message: 'store away' }));
  expect(lost).toMatchObject({ attempts: 4, fault: { kind: 'failed', message: 'store away' } });
  expect(lost!.seconds).toEqual({ atLeast: 11, atMost: 12 });
});

test('a failure that says when to come again is taken at its word', () => {
  const failure = { message: 'later', applicationFailureInfo: { nextRetryDelay: { seconds: 30 } } };
  expect(only(begun(31, 2, failure)).lost!.seconds).toEqual({ atLeast: 30, atMost: 31 });
});

test('what earlier failures waited for is not taken from the policy where the last one said when to come again', () => {
  // Three of them, a second apart, and a worker that came late to the first attempt: 1 + 2 s of the policy never passed.
  const failure = { message: 'later', applicationFailureInfo: { nextRetryDelay: { seconds: 1 } } };
  expect(only(begun(9, 4, failure)).lost!.seconds).toEqual({ atLeast: 1, atMost: 9 });
});

test('what must not be repeated and lost its worker is lost once, on the worker that had it', () => {
  const failed = event(7, 9, {
    activityTaskTimedOutEventAttributes: {
      scheduledEventId: 5,
      failure: { message: 'activity Heartbeat timeout', timeoutFailureInfo: { timeoutType: 4 } },
    },
  });
  const activity = only(begun(1, 1), failed);
  expect(activity).toMatchObject({ state: 'timed-out', attempts: 1, fault: { kind: 'silent' } });
  expect(activity.lost).toMatchObject({ attempts: 1, worker: '7@there', exact: true, open: false });
  expect(activity.lost!.seconds).toEqual({ atLeast: 6, atMost: 9 });
});

test('what nobody came for was lost by nobody', () => {
  const failed = event(7, 60, {
    activityTaskTimedOutEventAttributes: {
      scheduledEventId: 5,
      failure: { message: 'activity ScheduleToStart timeout', timeoutFailureInfo: { timeoutType: 2 } },
    },
  });
  expect(only(failed)).toMatchObject({ state: 'timed-out', fault: { kind: 'nobody-came' }, lost: null });
});

test('clocks that were set back make no negative times', () => {
  const { lost } = only(begun(0.1, 2, { message: 'x' }));
  expect(lost!.to).toBeGreaterThanOrEqual(lost!.from);
  expect(lost!.seconds.atLeast).toBeLessThanOrEqual(lost!.seconds.atMost);
});
