import type { Client, WorkflowHandle } from '@temporalio/client';
import { z } from 'zod';
import { GradusError, isA } from '../../core/errors.ts';
import { findExecution } from '../temporal/find-execution.ts';
import { readHistory } from '../temporal/history.ts';
import { firstValue } from '../temporal/temporal-values.ts';
import { textAttribute } from '../temporal/executions.ts';
import type { Execution } from '../temporal/executions.ts';
import type { curriculum } from '../../workflows/curriculum/curriculum.ts';
import { specDigest, startRun } from './start.ts';

/** What is looked at of a spec as a person wrote it: whoever reads it as a whole refuses what is wrong. */
const written = z.looseObject({
  run: z.string().optional(),
  policy: z.looseObject({ kind: z.string().optional() }).optional(),
  stages: z.array(z.looseObject({ collect: z.looseObject({ kind: z.string().optional() }).optional() })),
});

export interface Recomputation {
  /** The name of the run in the store. */
  run: string;
  /** As it is started: the run that it makes is named after its workflow. */
  spec: unknown;
}

/**
 * The spec that makes a run again: its own, and asynchronous stages follow what its steps have taken.
 * Throws GradusError('spec', 'no-run') where Temporal does not know it any more, and GradusError('spec', 'served') where
 * servers sampled, which do not sample the same twice.
 */
export async function recomputationOf(temporal: Client, name: string): Promise<Recomputation> {
  const execution = await findExecution(temporal, name);
  const input = execution && (await startOf(temporal, execution));
  const run = execution && textAttribute(execution, 'GradusRun');
  if (!input || run === null)
    throw new GradusError(
      'spec',
      'no-run',
      `Temporal has no start of a run ${JSON.stringify(name)} any more, which says its spec: start the same spec again, and give its asynchronous stages collect.follow = ${JSON.stringify(name)}`,
    );
  const { run: _, ...spec } = written.parse(input);
  if (spec.policy?.kind === 'http')
    throw new GradusError(
      'spec',
      'served',
      `servers sampled for ${run}, and do not sample the same twice: its episodes are stored, and policy "recorded" takes them again`,
    );
  const stages = spec.stages.map((stage) =>
    stage.collect?.kind === 'asynchronous' ? { ...stage, collect: { ...stage.collect, follow: run } } : stage,
  );
  return { run, spec: { ...spec, stages } };
}

/** Starts a recomputation, or finds the same one, which goes on after the command that began it has ended. Throws as `startRun`. */
export async function startOrJoin(
  temporal: Client,
  workflowId: string,
  spec: unknown,
): Promise<WorkflowHandle<typeof curriculum>> {
  try {
    return await startRun(temporal, workflowId, spec);
  } catch (error) {
    if (!isA(error, GradusError) || error.type !== 'running') throw error;
    const handle = temporal.workflow.getHandle<typeof curriculum>(workflowId);
    const { memo } = await handle.describe();
    if (memo?.['specDigest'] !== specDigest(spec)) throw error;
    return handle;
  }
}

/** What the first execution of a run was given: those that it continued as have something else. */
async function startOf(temporal: Client, execution: Execution): Promise<unknown> {
  const newest = await readHistory(temporal, execution, 1);
  const start = newest?.events[0]?.workflowExecutionStartedEventAttributes;
  const runId = start?.firstExecutionRunId;
  if (!runId || runId === newest!.runId) return firstValue(start?.input);
  const first = await readHistory(temporal, { workflowId: execution.workflowId, runId }, 1);
  return firstValue(first?.events[0]?.workflowExecutionStartedEventAttributes?.input);
}
