import { setTimeout as delay } from 'node:timers/promises';
import { WorkflowExecutionAlreadyStartedError } from '@temporalio/client';
import type { Client, WorkflowHandle } from '@temporalio/client';
import { GradusError } from '../../core/errors.ts';
import { commandLine } from '../../core/installation.ts';
import { QUEUES } from '../../core/names.ts';
import { executionOf, textAttribute } from '../temporal/executions.ts';
import type { Execution } from '../temporal/executions.ts';
import { isServed } from '../temporal/pollers.ts';
import { endOfRun } from '../overview/why.ts';
import { sha256Hex } from '../../store/digest.ts';
import type { curriculum } from '../../workflows/curriculum/curriculum.ts';

/** By which a run is known to have been started with a spec. */
export const specDigest = (spec: unknown): string => sha256Hex(Buffer.from(JSON.stringify(spec)));

/**
 * Starts a run under an id that no other one goes on with. Throws GradusError('infra', 'no-worker') where nobody is there
 * to execute it, and GradusError('spec', 'running').
 */
export async function startRun(
  temporal: Client,
  workflowId: string,
  spec: unknown,
): Promise<WorkflowHandle<typeof curriculum>> {
  await assertServed(temporal, 'the run');
  try {
    return await temporal.workflow.start<typeof curriculum>('curriculum', {
      args: [spec],
      workflowId,
      taskQueue: QUEUES.orchestrator,
      workflowIdConflictPolicy: 'FAIL',
      memo: { specDigest: specDigest(spec) },
    });
  } catch (cause) {
    if (!(cause instanceof WorkflowExecutionAlreadyStartedError)) throw cause;
    const id = JSON.stringify(workflowId);
    throw new GradusError(
      'spec',
      'running',
      `${id} is already running: "${commandLine(`why ${workflowId}`)}" says what it waits for. Give this run another id, or stop that one`,
      { cause },
    );
  }
}

/** Throws GradusError('infra', 'no-worker') where nobody is there to execute a workflow. */
export async function assertServed(temporal: Client, what: string): Promise<void> {
  if (await isServed(temporal, QUEUES.orchestrator, 'workflows')) return;
  throw new GradusError(
    'infra',
    'no-worker',
    `no worker serves the queue ${QUEUES.orchestrator}, so ${what} would not begin: start workers, with "${commandLine('dev')}" say`,
    { retryable: true },
  );
}

const LOOK_MS = 100;

/**
 * What a run is called in the store, once it has read its spec and claimed a name; null where it has not in this time.
 * Throws GradusError('spec', 'refused') with what was said, where it has ended before; nothing is left of it then, since
 * whoever started it is told.
 */
export async function claimedName(
  temporal: Client,
  workflowId: string,
  patienceMs = 20_000,
): Promise<string | null> {
  const until = performance.now() + patienceMs;
  while (performance.now() < until) {
    const execution = await executionOf(temporal, workflowId);
    const name = execution && textAttribute(execution, 'GradusRun');
    if (name !== null) return name;
    if (execution !== null && execution.closedAt !== null) {
      const why = (await endOfRun(temporal, execution)) ?? `it is ${execution.status}`;
      if (execution.status !== 'failed') throw new GradusError('spec', 'refused', why);
      await forget(temporal, execution);
      throw new GradusError('spec', 'refused', `${why}\nNothing of this run is kept.`);
    }
    await delay(LOOK_MS);
  }
  return null;
}

async function forget(temporal: Client, { workflowId, runId }: Execution): Promise<void> {
  const { namespace } = temporal.options;
  const workflowExecution = { workflowId, runId };
  await temporal.workflowService.deleteWorkflowExecution({ namespace, workflowExecution });
}
