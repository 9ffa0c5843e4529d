import { Worker } from '@temporalio/worker';
import { durable } from '../activities/durable.ts';
import { PolicyPool } from '../activities/rollout/policy-pool.ts';
import { createRollout } from '../activities/rollout/rollout.ts';
import { createDecoder } from '../engine/decoder/decoder.ts';
import { backendName } from '../engine/decoder/load-backend.ts';
import { commonOptions } from './runtime.ts';
import type { RoleWorker, WorkerRuntime } from './runtime.ts';

/** Advances episodes: policy and inline tools. */
export async function createRolloutWorker(runtime: WorkerRuntime): Promise<RoleWorker> {
  const threads = runtime.settings.decoderThreads;
  const policies = new PolicyPool(runtime.store, () => createDecoder({ threads }));
  const worker = await Worker.create({
    ...commonOptions(runtime, 'rollout'),
    activities: durable(createRollout({ ...runtime, policies })),
    maxConcurrentActivityTaskExecutions: 64,
  });
  return {
    run: () => worker.run(),
    shutdown: () => worker.shutdown(),
    close: () => policies.close(),
    description: `rollout: ${backendName()}, ${threads} thread${threads === 1 ? '' : 's'}`,
  };
}
