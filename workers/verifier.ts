import { Worker } from '@temporalio/worker';
import { durable } from '../activities/durable.ts';
import { createVerification } from '../activities/verifiers.ts';
import { commonOptions } from './runtime.ts';
import type { RoleWorker, WorkerRuntime } from './runtime.ts';

/** Judges episodes. */
export async function createVerifierWorker(runtime: WorkerRuntime): Promise<RoleWorker> {
  const worker = await Worker.create({
    ...commonOptions(runtime, 'verifier'),
    activities: durable(createVerification(runtime)),
    maxConcurrentActivityTaskExecutions: 16,
  });
  return {
    run: () => worker.run(),
    shutdown: () => worker.shutdown(),
    close: async () => undefined,
    description: 'verifier: fast tier',
  };
}
