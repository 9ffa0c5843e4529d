import type { Client } from '@temporalio/client';
import { messageOf } from '../core/errors.ts';
import { findExecution } from '../runs/temporal/find-execution.ts';
import { whyOfExecution } from '../runs/overview/why.ts';
import { whyInWords } from '../runs/overview/why-in-words.ts';

/** What a run waits for or tries again, in sentences; what simply works is left out unless `works`. */
export async function whyItWaits(
  temporal: Client,
  workflowId: string,
  { works = false } = {},
): Promise<string[]> {
  try {
    const execution = await findExecution(temporal, workflowId);
    if (execution === null) return [];
    const { reasons } = await temporal.withDeadline(Date.now() + 10_000, () =>
      whyOfExecution(temporal, execution, Date.now()),
    );
    return reasons
      .filter(({ kind }) => works || kind !== 'works')
      .map((reason) => whyInWords(reason, Date.now()));
  } catch (error) {
    return [messageOf(error)];
  }
}
