import { Worker } from '@temporalio/worker';
import { createTier } from '../activities/tier.ts';
import { commonOptions } from './runtime.ts';
import type { RoleWorker, WorkerRuntime } from './runtime.ts';

/** Serves the TypeScript verifiers of one tier; other languages have pools of their own (core/names.ts, `tierQueue`). */
export const createTierWorker =
  (tier: 'simulation' | 'high-fidelity') =>
  async (runtime: WorkerRuntime): Promise<RoleWorker> => {
    const { tierConcurrency, tierRate } = runtime.settings;
    const worker = await Worker.create({
      ...commonOptions(runtime, tier),
      activities: createTier(runtime),
      maxConcurrentActivityTaskExecutions: tierConcurrency,
      ...(tierRate === undefined ? {} : { maxActivitiesPerSecond: tierRate }),
    });
    return {
      run: () => worker.run(),
      shutdown: () => worker.shutdown(),
      close: async () => undefined,
      description: `${tier}: TypeScript verifiers, ${tierConcurrency} at once`,
    };
  };
