import { Worker } from '@temporalio/worker';
import { createTools } from '../activities/rollout/tools.ts';
import { commonOptions } from './runtime.ts';
import type { RoleWorker, WorkerRuntime } from './runtime.ts';

/** Runs long tool calls. */
export async function createToolWorker(runtime: WorkerRuntime): Promise<RoleWorker> {
  const worker = await Worker.create({
    ...commonOptions(runtime, 'tool'),
    activities: createTools(runtime, runtime.watch),
    maxConcurrentActivityTaskExecutions: 64,
  });
  return {
    run: () => worker.run(),
    shutdown: () => worker.shutdown(),
    close: async () => undefined,
    description: 'tool: long tool calls',
  };
}
