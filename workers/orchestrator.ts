import { Worker } from '@temporalio/worker';
import { createCurriculum } from '../activities/training/curriculum.ts';
import { durable } from '../activities/durable.ts';
import { commonOptions } from './runtime.ts';
import type { RoleWorker, WorkerRuntime } from './runtime.ts';
import { workflowBundle } from './workflow-bundle.ts';

/** Runs the workflows, and the light activities around them: specs, batches, retention. */
export async function createOrchestratorWorker(runtime: WorkerRuntime): Promise<RoleWorker> {
  const worker = await Worker.create({
    ...commonOptions(runtime, 'orchestrator'),
    workflowBundle: { code: await workflowBundle() },
    activities: durable(createCurriculum(runtime), runtime.watch),
    maxConcurrentActivityTaskExecutions: 8,
    // A workflow whose worker died is picked up by another after this long.
    stickyQueueScheduleToStartTimeout: '2 seconds',
  });
  return {
    run: () => worker.run(),
    shutdown: () => worker.shutdown(),
    close: async () => undefined,
    description: `orchestrator: ${runtime.environments.size} environments`,
  };
}
