import { ApplicationFailure, workflowInfo } from '@temporalio/workflow';
import type { ParentWorkflowInfo } from '@temporalio/workflow';
import type { Shape } from '../../core/json/shape.ts';

/**
 * What a workflow was started with, if it has this shape; otherwise the workflow fails, and says why. Without this it
 * would trip over what is missing, again and again, for ever.
 */
export function checked<T>(shape: Shape<T>, input: unknown): T {
  const problem = shape(input, 'input');
  if (problem === null) return input as T;
  throw refusal(`${workflowInfo().workflowType} cannot begin with this. ${problem}`);
}

/** The workflow that this one is a part of. What is carried over continue-as-new is never a person's to give. */
export function parentOf(carried: unknown = null): ParentWorkflowInfo {
  const { parent, workflowType } = workflowInfo();
  if (!parent) {
    throw refusal(`${workflowType} is a part of a run, which starts it: start a curriculum instead`);
  }
  onlyContinued(carried);
  return parent;
}

/** Fails the workflow where a state to go on from was given to one that begins. */
export function onlyContinued(carried: unknown): void {
  if (carried === null || carried === undefined) return;
  if (workflowInfo().continuedFromExecutionRunId !== undefined) return;
  throw refusal(
    `${workflowInfo().workflowType} takes one input; what it carries over continue-as-new is its own`,
  );
}

export const refusal = (reason: string): ApplicationFailure =>
  ApplicationFailure.nonRetryable(reason, 'gradus.spec.invalid');
