import { expect, test } from 'vitest';
import { HandOver } from '../../../../../activities/rollout/served/hand-over.ts';
import type { ServedVersion } from '../../../../../activities/rollout/served/hand-over.ts';
import { Replica } from '../../../../../activities/rollout/served/replica.ts';
import type { ServedPolicySpec } from '../../../../../core/schema/policy.ts';
import type { ObjectStore } from '../../../../../store/objects/object-store.ts';

test('who waits for a hand-over of somebody else is ended by its own signal', async () => {
  const spec = { server: 'vllm', requestSeconds: 60 } as ServedPolicySpec;
  const replica = new Replica(spec, 'http://127.0.0.1:9');
  let finish!: () => void;
  replica.handedOver = new Promise((resolve) => (finish = resolve));
  replica.weights = 'held';
  const asked = new AbortController();
  const version = { checkpoint: { weights: 'held' } } as ServedVersion;
  const handOver = new HandOver({} as ObjectStore, spec);
  const given = handOver.ensure(replica, version, asked.signal);
  const later = handOver.ensure(replica, version, new AbortController().signal);
  asked.abort(new Error('given up'));
  await expect(given).rejects.toThrow('given up');
  finish();
  await later;
  expect(replica.weights).toBe('held');
  await replica.close();
});
