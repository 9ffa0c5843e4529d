import { Client } from '@temporalio/client';
import { Worker } from '@temporalio/worker';
import { durable } from '../activities/durable.ts';
import { createAssessment } from '../activities/ladder/assessment.ts';
import { createLadder } from '../activities/ladder/ladder.ts';
import { createReverify } from '../activities/ladder/reverify.ts';
import { createRunWatch } from '../activities/run-watch.ts';
import { createSweep } from '../activities/ladder/sweep.ts';
import { createVerdicts } from '../activities/verification/verdicts.ts';
import { createVerification } from '../activities/verification/verifiers.ts';
import { commonOptions } from './runtime.ts';
import type { RoleWorker, WorkerRuntime } from './runtime.ts';

/** Judges episodes. */
export async function createVerifierWorker(runtime: WorkerRuntime): Promise<RoleWorker> {
  const { connection, settings } = runtime;
  const client = new Client({ connection, namespace: settings.namespace });
  const worker = await Worker.create({
    ...commonOptions(runtime, 'verifier'),
    activities: durable(
      {
        ...createVerification(runtime),
        ...createAssessment(runtime),
        ...createLadder(runtime),
        ...createReverify(runtime),
        ...createSweep(runtime),
        ...createRunWatch({ client }),
        ...createVerdicts({ store: runtime.store, client }),
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
