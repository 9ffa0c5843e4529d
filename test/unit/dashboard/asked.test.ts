import { expect, test } from 'vitest';
import { steerRequestIn, askedQuery, isDone, untilDone } from '../../../dashboard/asked.ts';
import type { SteerRequest } from '../../../dashboard/asked.ts';
import type { RunObserver, RunView } from '../../../runs/overview/run.ts';
import type { Progress } from '../../../workflows/control/messages.ts';

const seen = <T>(value: T | null, problem: string | null = null) => ({ value, asOf: 0, problem });
const view = (status: Progress['status'], question: string | null = null, closedAt: number | null = null) =>
  ({
    run: 'run',
    execution: seen({ closedAt }),
    progress: seen({ status, question: question === null ? null : { id: question } }),
  }) as unknown as RunView;

test.each<[SteerRequest, RunView, boolean]>([
  [{ kind: 'pause' }, view('running'), false],
  [{ kind: 'pause' }, view('paused'), true],
  [{ kind: 'pause' }, view('waiting', 'q'), true],
  [{ kind: 'resume' }, view('paused'), false],
  [{ kind: 'resume' }, view('running'), true],
  [{ kind: 'stop' }, view('waiting', 'q'), false],
  [{ kind: 'stop' }, view('stopping'), true],
  [{ kind: 'stop' }, view('running', null, 5), true],
  [{ kind: 'answer', question: 'q' }, view('waiting', 'q'), false],
  [{ kind: 'answer', question: 'q' }, view('waiting', 'next'), true],
  [{ kind: 'answer', question: 'q' }, view('running'), true],
  [{ kind: 'pause' }, { ...view('paused'), progress: seen({ status: 'paused' } as Progress, 'away') }, false],
])('%o is seen in what the run says of itself', (asked, of, done) => expect(isDone(asked, of)).toBe(done));

test('who has changed a run is shown it as it is then, or told that it is not yet', async () => {
  const views = [view('running'), view('running'), view('paused')];
  const observer = { lookAnew: () => Promise.resolve(views.shift()!) } as unknown as RunObserver;
  expect(await untilDone(observer, 'run', { kind: 'pause' }, Infinity)).toBe(true);
  expect(views).toEqual([]);
  const stays = { lookAnew: () => Promise.resolve(view('running')) } as unknown as RunObserver;
  expect(await untilDone(stays, 'run', { kind: 'pause' }, 0)).toBe(false);
});

test('what was asked is in the address', () => {
  for (const asked of [{ kind: 'stop' }, { kind: 'answer', question: 'a&b' }] as const) {
    const query = new URLSearchParams(askedQuery(asked));
    expect(steerRequestIn(query.get('asked') ?? undefined, query.get('question') ?? undefined)).toEqual(
      asked,
    );
  }
  expect(steerRequestIn('anything', 'q')).toBeNull();
});
