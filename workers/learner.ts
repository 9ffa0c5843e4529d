import { Worker } from '@temporalio/worker';
import { durable } from '../activities/durable.ts';
import { createTraining } from '../activities/training/learner.ts';
import { createLearner } from '../engine/learner/process/remote-learner.ts';
import { commonOptions } from './runtime.ts';
import type { RoleWorker, WorkerRuntime } from './runtime.ts';

/** Makes learner steps, one at a time; TensorFlow runs in a process of its own. */
export async function createLearnerWorker(runtime: WorkerRuntime): Promise<RoleWorker> {
  const learner = await createLearner();
  const worker = await Worker.create({
    ...commonOptions(runtime, 'learner'),
    activities: durable(createTraining({ store: runtime.store, learner }), runtime.watch),
    maxConcurrentActivityTaskExecutions: 1,
  });
  return {
    run: () => worker.run(),
    shutdown: () => worker.shutdown(),
    close: () => learner.close(),
    description: `learner: ${learner.backend}`,
  };
}
