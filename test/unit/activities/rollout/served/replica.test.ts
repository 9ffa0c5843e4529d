import { expect, onTestFinished, test, vi } from 'vitest';
import { Replica } from '../../../../../activities/rollout/served/replica.ts';

test('all that fails when a server dies is one failure: it is left alone as if one request had failed', () => {
  const replica = new Replica({ server: 'vllm', requestSeconds: 1 }, 'http://127.0.0.1:1');
  // No time goes by between a rest and the question how long it is; whole milliseconds, of which sums are exact.
  const clock = vi.spyOn(performance, 'now').mockReturnValue(1000);
  onTestFinished(() => clock.mockRestore());
  onTestFinished(() => replica.close());
  for (let i = 0; i < 64; i++) replica.rest();
  expect(replica.restsFor()).toBe(500);
  // What it asks for itself counts.
  replica.rest(20);
  expect(replica.restsFor()).toBe(20_000);
});
