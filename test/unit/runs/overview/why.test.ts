import { expect, test } from 'vitest';
import type { PendingActivity } from '../../../../runs/temporal/pending.ts';
import { serverOf } from '../../../../runs/temporal/pollers.ts';
import { reasonsOf } from '../../../../runs/overview/why.ts';
import { whyInWords } from '../../../../runs/overview/why-in-words.ts';

const NOW = 1_000_000;
const asks = (secondsAgo: number) => ({ identity: 'worker', at: NOW - 1000 * secondsAgo });

test.each([
  ['there', [asks(40)], null, false],
  // A question for work lasts a minute at most.
  ['missing', [asks(80)], null, false],
  ['missing', [], null, false],
  ['busy', [asks(80)], null, true],
  // Had anybody listened, the work would have gone to them at once.
  ['silent', [asks(20)], 10, false],
  ['busy', [asks(20)], 10, true],
  ['there', [asks(5)], 10, false],
  ['there', [asks(20)], 1, false],
] as const)('a queue has a server that is %s', (state, pollers, waits, inHand) => {
  const waitingSince = waits === null ? null : NOW - 1000 * waits;
  expect(serverOf(pollers, { waitingSince, inHand }, NOW)).toBe(state);
});

const activity = (more: Partial<PendingActivity>): PendingActivity => ({
  workflowId: 'run/rl/1/0',
  activity: 'advance',
  queue: 'gradus-rollout',
  state: 'runs',
  attempt: 1,
  due: NOW - 60_000,
  startedAt: NOW - 50_000,
  heartbeatAt: NOW - 1000,
  heartbeatSeconds: 6,
  lastFailure: null,
  worker: 'w',
  said: null,
  ...more,
});
const served = { workflows: [asks(3)], activities: new Map([['gradus-rollout', [asks(3)]]]) };
const words = (activities: PendingActivity[], pollers: Parameters<typeof reasonsOf>[1] = served) =>
  reasonsOf({ activities, tasks: [] }, pollers, NOW).map((reason) => whyInWords(reason, NOW));

test('what is slow is told from what hangs', () => {
  const said = { kind: 'progress', total: 8, tokens: 100 } as const;
  expect(
    words([
      activity({ said: { ...said, done: 3 } }),
      activity({ said: { ...said, done: 4 }, workflowId: 'run/rl/1/1' }),
    ]),
  ).toEqual([
    'advance (2 of them, one of run/rl/1/0) runs for 50 s, last sign of life 1 s ago: 7 of 16 episodes, 200 tokens',
  ]);
  expect(words([activity({ heartbeatAt: NOW - 5000 })])).toEqual([
    'advance of run/rl/1/0 runs for 50 s and last gave a sign of life 5 s ago; after 6 s it is given to another worker',
  ]);
});

test('what is tried again says why, how often, and when next', () => {
  const lastFailure = { kind: 'failed', message: 'the store is away' } as const;
  expect(words([activity({ state: 'waits', attempt: 4, due: NOW + 2500, lastFailure })])).toEqual([
    'advance of run/rl/1/0 failed 3 times, tried next in 3 s: the store is away',
  ]);
  expect(words([activity({ attempt: 2, lastFailure })])).toEqual([
    'advance of run/rl/1/0 failed 1 time, being tried: the store is away',
  ]);
});

test('a queue that nobody serves is named once, with all that waits in it', () => {
  const waiting = activity({ state: 'waits', startedAt: null, heartbeatAt: null, worker: null });
  const gone = { ...served, activities: new Map([['gradus-rollout', [asks(300)]]]) };
  expect(words([waiting, { ...waiting, workflowId: 'run/rl/1/1' }], gone)).toEqual([
    'no worker serves the queue gradus-rollout (activities): its last worker polled 5 min ago; 2 advances wait for 1 min',
  ]);
  // Everybody is busy.
  expect(words([waiting, activity({ activity: 'resume' })], gone)).toEqual([
    'advance of run/rl/1/0 waits for 1 min for a free place on gradus-rollout',
    'resume of run/rl/1/0 runs for 50 s, last sign of life 1 s ago',
  ]);
  expect(words([waiting], { ...gone, busy: new Set(['gradus-rollout']) })).toEqual([
    'advance of run/rl/1/0 waits for 1 min for a free place on gradus-rollout',
  ]);
});

test('workflows that nobody executes, and one that cannot be executed, are two things', () => {
  const task = { workflowId: 'run', queue: 'gradus', attempt: 7, since: NOW - 90_000, startedAt: NOW - 100 };
  const of = (workflows: typeof served.workflows, more = {}) =>
    reasonsOf({ activities: [], tasks: [{ ...task, ...more }] }, { workflows, activities: new Map() }, NOW);
  expect(of([asks(1)])).toMatchObject([{ kind: 'workflow-fails', attempt: 7 }]);
  expect(of([asks(100)], { attempt: 1, startedAt: null })).toMatchObject([
    { kind: 'no-worker', serves: 'workflows', count: 1, what: ['run'], sure: true },
  ]);
});
