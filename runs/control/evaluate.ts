import { randomUUID } from 'node:crypto';
import { WorkflowFailedError } from '@temporalio/client';
import type { Client, WorkflowHandle } from '@temporalio/client';
import { GradusError } from '../../core/errors.ts';
import { canonicalJson } from '../../core/json/canonical-json.ts';
import type { Json } from '../../core/json/json.ts';
import { QUEUES } from '../../core/names.ts';
import type { EvaluateSpec } from '../../core/schema/evaluate.ts';
import { sha256Hex } from '../../store/digest.ts';
import type { evaluate, EvaluateOutcome } from '../../workflows/training/evaluate.ts';
import { assertServed } from './start.ts';

/**
 * What the workers would evaluate, null where no checkpoint is named, and then how much; and what its verdicts may cost.
 * Nothing is rolled out or stored.
 * Throws GradusError('spec', 'refused') with what is wrong, and GradusError('infra', 'no-worker').
 */
export async function checkedEvaluate(
  temporal: Client,
  written: Record<string, unknown>,
  watch: Watch = () => Promise.resolve(),
): Promise<Pick<EvaluateOutcome, 'spec' | 'counts' | 'expected'>> {
  await assertServed(temporal, 'the evaluation');
  const handle = await begin(temporal, `evaluate-check-${randomUUID()}`, { ...written, dryRun: true });
  return outcomeOf(handle, watch);
}

/** Follows the workflow of this id until it is called off. */
export type Watch = (workflowId: string, signal: AbortSignal) => Promise<void>;

/** The same evaluation has the same id: whoever asks for it again finds the one that goes on, or what it stored. */
export const evaluationId = (spec: EvaluateSpec): string => {
  const text = canonicalJson(JSON.parse(JSON.stringify({ ...spec, run: undefined })) as Json);
  return `evaluate-${sha256Hex(new TextEncoder().encode(text)).slice(0, 16)}`;
};

/** Starts an evaluation, or finds the one of this id that goes on. */
export const begin = (
  temporal: Client,
  workflowId: string,
  written: unknown,
): Promise<WorkflowHandle<typeof evaluate>> =>
  temporal.workflow.start<typeof evaluate>('evaluate', {
    args: [written],
    workflowId,
    taskQueue: QUEUES.orchestrator,
    workflowIdConflictPolicy: 'USE_EXISTING',
  });

/** Throws GradusError('spec', 'refused') with what was said, where it failed. */
export async function outcomeOf(
  handle: WorkflowHandle<typeof evaluate>,
  watch: Watch = () => Promise.resolve(),
): Promise<EvaluateOutcome> {
  const watching = new AbortController();
  const watched = watch(handle.workflowId, watching.signal);
  try {
    const outcome = await handle.result().finally(() => watching.abort());
    await watched;
    return outcome;
  } catch (error) {
    if (!(error instanceof WorkflowFailedError)) throw error;
    let at: Error = error;
    while (at.cause instanceof Error) at = at.cause;
    throw new GradusError('spec', 'refused', at.message, { cause: error });
  }
}
