import { Worker } from '@temporalio/worker';
import { createTier } from '../activities/verification/tier.ts';
import { commonOptions } from './runtime.ts';
import type { RoleWorker, WorkerRuntime } from './runtime.ts';
import type { ServedTier } from './settings.ts';

/** Serves the TypeScript verifiers of one tier; other languages have pools of their own (core/names.ts, `tierQueue`). */
export const createTierWorker =
  (tier: ServedTier) =>
  async (runtime: WorkerRuntime): Promise<RoleWorker> => {
    const concurrency = runtime.settings.tierConcurrency[tier];
    const rate = runtime.settings.tierRate[tier];
    const worker = await Worker.create({
      ...commonOptions(runtime, tier),
      activities: createTier(runtime),
      maxConcurrentActivityTaskExecutions: concurrency,
      // Held by the server, so that it is the tier's however many workers there are.
      ...(rate === undefined ? {} : { maxTaskQueueActivitiesPerSecond: rate }),
    });
    return {
      run: () => worker.run(),
      shutdown: () => worker.shutdown(),
      close: async () => undefined,
      description: `${tier}: TypeScript verifiers, ${concurrency} at once${rate === undefined ? '' : `, ${rate} a second`}`,
    };
  };
