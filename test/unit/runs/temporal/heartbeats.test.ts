import { expect, test } from 'vitest';
import { heartbeatInWords, heartbeatOf } from '../../../../runs/temporal/heartbeats.ts';
import { inFlight } from '../../../../runs/operations/operations.ts';
import type { DescribedActivity } from '../../../../runs/temporal/temporal-values.ts';

const words = (details: unknown): string | null => {
  const said = heartbeatOf(details);
  return said && heartbeatInWords(said);
};

test('what an activity says of itself is told in a line, whichever kind it is', () => {
  expect(words(undefined)).toBeNull();
  expect(words({ done: 3, total: 16, tokens: 1200 })).toBe('3 of 16 episodes, 1200 tokens');
  expect(words({ failed: 2, reason: 'no route', said: { frame: 7 } })).toBe(
    '2 attempts of the tool failed; no route; the tool says {"frame":7}',
  );
  expect(words({ waitsForStoreSeconds: 9, reason: 'away' })).toBe('waits for the object store for 9 s: away');
});

test('what nobody knows is shown as it is, cut; numbers that are none are no progress', () => {
  expect(words({ done: 'many', total: 3 })).toBe('{"done":"many","total":3}');
  expect(words({ done: -1, total: Number.NaN })).toContain('-1');
  expect(words('x'.repeat(5000))!.length).toBeLessThan(400);
});

test('an activity that waits says from when on it may be tried again, and who had it last', () => {
  const pending = {
    activityId: '5',
    activityType: { name: 'resume' },
    state: 'PENDING_ACTIVITY_STATE_SCHEDULED',
    attempt: 4,
    lastWorkerIdentity: '9@there',
    lastFailure: { message: 'outer', cause: { message: 'the store is away' }, applicationFailureInfo: {} },
    nextAttemptScheduleTime: { seconds: 1_795_400_000, nanos: 500_000_000 },
    lastStartedTime: { seconds: 1_795_300_000 },
    heartbeatDetails: { payloads: [{ metadata: {}, data: new Uint8Array([0xff, 0]) }] },
  } as unknown as DescribedActivity;
  expect(inFlight(pending)).toEqual({
    name: 'resume',
    queue: null,
    state: 'waiting',
    attempt: 4,
    since: 1_795_400_000_500,
    beat: null,
    said: null,
    worker: '9@there',
    lastFailure: { kind: 'failed', message: 'the store is away' },
  });
});
