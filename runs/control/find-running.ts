import type { Client } from '@temporalio/client';
import { GradusError } from '../../core/errors.ts';
import { commandLine } from '../../core/installation.ts';
import { runStatusOf } from '../overview/runs.ts';
import { findExecution } from '../temporal/find-execution.ts';

/**
 * The id of the workflow of a run that goes on, by that id or by the run's name in the store. Throws
 * GradusError('spec', 'no-run' | 'over') and GradusError('infra', 'temporal-unreachable').
 */
export async function findRunning(temporal: Client, name: string): Promise<string> {
  const found = await findExecution(temporal, name);
  const which = JSON.stringify(name);
  const others = `"${commandLine('runs')}" lists those there are`;
  if (found === null) throw new GradusError('spec', 'no-run', `Temporal knows no run ${which}; ${others}`);
  if (found.closedAt !== null)
    throw new GradusError(
      'spec',
      'over',
      `the run ${which} is over (${runStatusOf(found)}): nothing of it can be steered any more`,
    );
  return found.workflowId;
}
