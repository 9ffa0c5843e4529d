import { randomUUID } from 'node:crypto';
import { Worker } from '@temporalio/worker';
import { durable } from '../activities/durable.ts';
import { OtherPolicies } from '../activities/rollout/other-policies.ts';
import { PolicyPool } from '../activities/rollout/policy-pool.ts';
import { createRollout } from '../activities/rollout/rollout.ts';
import { createTools } from '../activities/rollout/tools.ts';
import { QUEUES } from '../core/names.ts';
import { createDecoder } from '../engine/decoder/decoder.ts';
import { backendName } from '../engine/decoder/load-backend.ts';
import { commonOptions } from './runtime.ts';
import type { RoleWorker, WorkerRuntime } from './runtime.ts';

/** Advances episodes: policy and inline tools. A queue of its own has the calls of sessions that are pinned to it. */
export async function createRolloutWorker(runtime: WorkerRuntime): Promise<RoleWorker> {
  const threads = runtime.settings.decoderThreads;
  const policies = new PolicyPool(runtime.store, () => createDecoder({ threads }));
  const otherPolicies = new OtherPolicies(runtime.store);
  const ownQueue = `${QUEUES.rollout}/${randomUUID()}`;
  const activities = durable(createRollout({ ...runtime, policies, otherPolicies, ownQueue }), runtime.watch);
  const worker = await Worker.create({
    ...commonOptions(runtime, 'rollout'),
    activities,
    maxConcurrentActivityTaskExecutions: 64,
  });
  const pinned = await Worker.create({
    ...commonOptions(runtime, 'rollout'),
    taskQueue: ownQueue,
    activities: { ...activities, ...createTools(runtime, runtime.watch) },
    maxConcurrentActivityTaskExecutions: 256,
  });
  return {
    run: async () => void (await Promise.all([worker.run(), pinned.run()])),
    shutdown: () => {
      worker.shutdown();
      pinned.shutdown();
    },
    close: async () => void (await Promise.all([policies.close(), otherPolicies.close()])),
    description: `rollout: ${backendName()}, ${threads} thread${threads === 1 ? '' : 's'}`,
  };
}
