import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import type { EpisodeSession, ToolCall } from '../../../../../core/episode/episode.ts';
import { hostedHere } from '../../../../../environments/host/hosted-environment.ts';
import type { Act } from '../../../../../core/episode/acts.ts';
import { houseWith } from '../../../../support/houses.ts';

// Sessions whose episodes were given up without a word, as those of a workflow that was terminated.

beforeAll(() => void vi.useFakeTimers({ toFake: ['Date', 'setInterval', 'clearInterval'] }));
afterAll(() => void vi.useRealTimers());

const MINUTE = 60_000;
const look: ToolCall = { name: 'look', arguments: {} };

function pinned(name: string, idleSeconds?: number) {
  const closed = vi.fn();
  const environment = hostedHere(
    houseWith(
      {
        resume: 'pin',
        open: () => ({ act: () => 'ok', close: closed }),
        ...(idleSeconds && { idleSeconds }),
      },
      { name },
    ),
  );
  const acts: Act[] = [];
  let kept: EpisodeSession | undefined;
  const call = async (): Promise<void> => {
    const session = {
      ref: { environment: name, split: 'train' as const, level: 1, index: 0 },
      id: name,
      acts: [...acts],
      kept,
    };
    const { signal } = new AbortController();
    const called = await environment.call(look, { idempotencyKey: 'a', attempt: 1, signal, session });
    kept = called.session;
    acts.push({ call: look, turn: acts.length + 1, observation: { text: called.observation.text } });
  };
  return { closed, call };
}

test('a pinned session is closed when it had no call for as long as its environment says', async () => {
  const { closed, call } = pinned('house-of-minutes', 600);
  await call();
  await vi.advanceTimersByTimeAsync(9 * MINUTE);
  await call();
  await vi.advanceTimersByTimeAsync(9 * MINUTE);
  expect(closed).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(3 * MINUTE);
  expect(closed).toHaveBeenCalledOnce();
  await expect(call()).rejects.toMatchObject({
    type: 'session-lost',
    message: expect.stringContaining('no call for 600 s') as string,
  });
});

test('where it does not say, a pinned session waits for six hours', async () => {
  const { closed, call } = pinned('house-of-hours');
  await call();
  await vi.advanceTimersByTimeAsync(5 * 60 * MINUTE);
  await call();
  await vi.advanceTimersByTimeAsync(5 * 60 * MINUTE);
  expect(closed).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(62 * MINUTE);
  expect(closed).toHaveBeenCalledOnce();
});
