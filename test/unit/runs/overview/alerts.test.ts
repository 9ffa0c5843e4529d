import { expect, test } from 'vitest';
import { alertsOf, noticesOf } from '../../../../runs/overview/alerts.ts';
import type { Memory, Notice, AlertObservation } from '../../../../runs/overview/alerts.ts';
import type { Reason } from '../../../../runs/overview/why.ts';

const notice = (key: string, more: Partial<Notice> = {}): Notice => ({
  key,
  kind: 'question',
  run: 'run',
  text: key,
  ...more,
});

/** What is told of observations that follow each other. */
function told(seen: (Notice[] | Omit<AlertObservation, 'at'>)[], retries = 3): string[][] {
  let memory: Memory = new Map();
  return seen.map((one) => {
    const observation = Array.isArray(one) ? { notices: one, looked: () => true } : one;
    const { alerts, memory: after } = alertsOf(memory, { at: 0, ...observation }, retries);
    memory = after;
    return alerts.map(({ text, over }) => `${over ? 'over ' : ''}${text}`);
  });
}

test('each thing is told once, and once more when it is over', () => {
  const one = notice('one');
  const two = notice('two');
  expect(told([[one], [one, two], [two], [two], []])).toEqual([
    ['one'],
    ['two'],
    ['over one'],
    [],
    ['over two'],
  ]);
  expect(told([[one], [], [one]])).toEqual([['one'], ['over one'], ['one']]);
  const failed = notice('failed', { kind: 'failed' });
  expect(told([[failed], []])).toEqual([['failed'], []]);
});

test('a retry is told from the n-th attempt on, and when their number has doubled', () => {
  const tries = [1, 2, 3, 4, 5, 6, 11, 13, 24].map((attempt) => [
    notice(`${attempt}`, { key: 'retry', kind: 'retry', attempt }),
  ]);
  expect(told(tries).flat()).toEqual(['3', '6', '13', '24']);
  // One that was over before anybody was told is not mentioned.
  expect(told([[notice('r', { kind: 'retry', attempt: 2 })], []])).toEqual([[], []]);
});

test('a worker is missing when it is missed twice', () => {
  const missing = notice('missing', { kind: 'no-worker' });
  expect(told([[missing], [], [missing], [missing], [missing], []])).toEqual([
    [],
    [],
    [],
    ['missing'],
    [],
    ['over missing'],
  ]);
});

test('what could not be looked at is so still', () => {
  const away = { notices: [], looked: (run: string | null) => run !== 'run' };
  const one = notice('one');
  expect(told([[one], away, [one], []])).toEqual([['one'], [], [], ['over one']]);
});

test('of reasons those become alerts that somebody has to do something about', () => {
  const retry = (attempt: number): Reason => ({
    kind: 'retry',
    activity: 'trainStep',
    queue: 'q',
    workflow: 'w',
    count: 1,
    attempt,
    since: 0,
    failure: 'no room',
    nextAt: null,
  });
  const missing = { kind: 'no-worker' as const, queue: 'gradus', serves: 'workflows' as const, what: ['a'] };
  const reasons: Reason[] = [
    { kind: 'paused' },
    retry(2),
    retry(7),
    { ...missing, since: 0, lastAsked: null, count: 0, sure: true },
    { ...missing, since: 0, lastAsked: null, count: 2, sure: true },
    { kind: 'question', question: null },
  ];
  expect(noticesOf('run', reasons, 1000)).toEqual([
    expect.objectContaining({
      kind: 'retry',
      attempt: 7,
      text: expect.stringContaining('no room') as string,
    }),
    expect.objectContaining({ kind: 'no-worker', key: 'no-worker/run/gradus/workflows' }),
  ]);
});
