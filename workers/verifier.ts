import { Client } from '@temporalio/client';
import { Worker } from '@temporalio/worker';
import { durable } from '../activities/durable.ts';
import { createLadderActivities } from '../activities/ladder/activities.ts';
import { createVerdicts } from '../activities/verification/verdicts.ts';
import { createVerification } from '../activities/verification/verifiers.ts';
import { commonOptions } from './runtime.ts';
import type { RoleWorker, WorkerRuntime } from './runtime.ts';

/** Judges episodes, keeps verdicts, and does what ladders ask for. */
export async function createVerifierWorker(runtime: WorkerRuntime): Promise<RoleWorker> {
  const { connection, settings } = runtime;
  const client = new Client({ connection, namespace: settings.namespace });
  const worker = await Worker.create({
    ...commonOptions(runtime, 'verifier'),
    activities: durable(
      {
        ...createVerification(runtime),
        ...createVerdicts({ store: runtime.store, client }),
        // On this queue, too: runs that go on have asked for them here.
        ...createLadderActivities(runtime, client),
      },
      runtime.watch,
    ),
    maxConcurrentActivityTaskExecutions: 16,
  });
  return {
    run: () => worker.run(),
    shutdown: () => worker.shutdown(),
    close: async () => undefined,
    description: 'verifier: fast tier',
  };
}
