import { Worker } from '@temporalio/worker';
import { durable } from '../activities/durable.ts';
import { createTraining } from '../activities/training/learner.ts';
import { createTinkerTraining } from '../activities/training/tinker/learner.ts';
import { createLearner } from '../engine/learner/process/remote-learner.ts';
import { commonOptions } from './runtime.ts';
import type { RoleWorker, WorkerRuntime } from './runtime.ts';
import type { WorkerSettings } from './settings.ts';
import { tinkerConnection } from './tinker-connection.ts';

/** Makes learner steps, one at a time: in TensorFlow, in a process of its own, or on a server that speaks Tinker's API. */
export async function createLearnerWorker(runtime: WorkerRuntime): Promise<RoleWorker> {
  const { tinker } = runtime.settings;
  if (tinker !== undefined) return createTinkerWorker(runtime, tinker);
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

async function createTinkerWorker(
  runtime: WorkerRuntime,
  settings: NonNullable<WorkerSettings['tinker']>,
): Promise<RoleWorker> {
  const { key, baseModel } = settings;
  const connection = tinkerConnection(settings);
  const { client } = connection;
  const { close, ...activities } = createTinkerTraining({
    store: runtime.store,
    client,
    key,
    baseModel,
    reference: createLearner,
  });
  const worker = await Worker.create({
    ...commonOptions(runtime, 'learner'),
    activities: durable(activities, runtime.watch),
    maxConcurrentActivityTaskExecutions: 1,
  });
  return {
    run: () => worker.run(),
    shutdown: () => worker.shutdown(),
    close: async () => {
      close();
      await connection.close();
    },
    description: `learner: tinker ${client.url}`,
  };
}
