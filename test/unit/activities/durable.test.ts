import { MockActivityEnvironment } from '@temporalio/testing';
import { expect, test } from 'vitest';
import { durable } from '../../../activities/durable.ts';

test('heartbeats tell how far an activity is by then, and nothing where it does not say', async () => {
  const environment = new MockActivityEnvironment();
  const beats: unknown[] = [];
  let beaten: (() => void) | undefined;
  const another = (): Promise<void> => new Promise((resolve) => (beaten = resolve));
  environment.on('heartbeat', (details: unknown) => {
    beats.push(structuredClone(details));
    beaten?.();
  });
  const { counts } = durable({
    counts: async (request: { total: number }, _: AbortSignal, tell?: (progress: object) => void) => {
      await another();
      const progress = { done: 0, total: request.total, tokens: 0 };
      tell!(progress);
      await another();
      Object.assign(progress, { done: 1, tokens: 7 });
      await another();
      return progress.done;
    },
  });
  expect(await environment.run(counts, { total: 2 })).toBe(1);
  expect(beats).toEqual([undefined, { done: 0, total: 2, tokens: 0 }, { done: 1, total: 2, tokens: 7 }]);
});
