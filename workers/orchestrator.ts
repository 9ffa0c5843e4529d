import { Worker } from '@temporalio/worker';
import { createCurriculum } from '../activities/training/curriculum.ts';
import { durable } from '../activities/durable.ts';
import { commonOptions } from './runtime.ts';
import type { RoleWorker, WorkerRuntime } from './runtime.ts';
import { tinkerConnection } from './tinker-connection.ts';
import { workflowBundle } from './workflow-bundle.ts';

/** Runs the workflows, and the light activities around them: specs, batches, retention. */
export async function createOrchestratorWorker(runtime: WorkerRuntime): Promise<RoleWorker> {
  const tinker = runtime.settings.tinker && tinkerConnection(runtime.settings.tinker);
  const worker = await Worker.create({
    ...commonOptions(runtime, 'orchestrator'),
    workflowBundle: { code: await workflowBundle() },
    activities: durable(createCurriculum({ ...runtime, tinker: tinker?.look }), runtime.watch),
    maxConcurrentActivityTaskExecutions: 8,
    // A workflow whose worker died is picked up by another after this long.
    stickyQueueScheduleToStartTimeout: '2 seconds',
  });
  return {
    run: () => worker.run(),
    shutdown: () => worker.shutdown(),
    close: async () => tinker?.close(),
    description: `orchestrator: ${runtime.environments.size} environments`,
  };
}
