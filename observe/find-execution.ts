import type { Client } from '@temporalio/client';
import { GradusError, messageOf } from '../core/errors.ts';
import { commandLine } from '../core/installation.ts';
import { assertRun } from '../store/find-run.ts';
import { isFileName } from '../store/keys.ts';
import { listExecutions, quoted, readExecution, textAttribute } from './executions.ts';
import type { Execution } from './executions.ts';
import { describe } from './pending.ts';
import type { Sources } from './sources.ts';

const PATIENCE_MS = 10_000;

/**
 * The newest execution of a run, by its workflow's id or by the run's name in the store; null where Temporal knows none.
 * Throws GradusError('spec', 'no-run') for the id of another workflow, and GradusError('infra', 'temporal-unreachable').
 */
export async function findExecution(temporal: Client, name: string): Promise<Execution | null> {
  try {
    return await temporal.withDeadline(Date.now() + PATIENCE_MS, () => find(temporal, name));
  } catch (error) {
    if (error instanceof GradusError) throw error;
    throw new GradusError(
      'infra',
      'temporal-unreachable',
      `Temporal does not answer, so which run ${JSON.stringify(name)} is cannot be said (${messageOf(error)}): see that its server runs, or start it with "${commandLine('dev')}"`,
      { retryable: true, cause: error },
    );
  }
}

/** The same. Throws GradusError('store', 'no-run') with the nearest name where the store knows no such run, either. */
export async function findRun({ store, temporal }: Sources, name: string): Promise<Execution | null> {
  const found = await findExecution(temporal, name);
  if (found !== null) return found;
  if (!isFileName(name)) throw new GradusError('store', 'no-run', `there is no run ${JSON.stringify(name)}`);
  await assertRun(store, name);
  return null;
}

async function find(temporal: Client, name: string): Promise<Execution | null> {
  const described = await describe(temporal, name);
  const byId = described?.workflowExecutionInfo ? readExecution(described.workflowExecutionInfo) : null;
  if (byId?.type === 'curriculum') return byId;
  const query = `WorkflowType = "curriculum" AND GradusRun = ${quoted(name)} AND ExecutionStatus != "ContinuedAsNew"`;
  const { executions } = await listExecutions(temporal, query, { limit: 10 });
  const [newest] = executions.toSorted(
    (a, b) => Number(b.closedAt === null) - Number(a.closedAt === null) || b.startedAt - a.startedAt,
  );
  if (newest !== undefined) return newest;
  if (byId === null) return null;
  const run = textAttribute(byId, 'GradusRun');
  const part = run === null ? '' : ` and belongs to the run ${run}`;
  throw new GradusError('spec', 'no-run', `${JSON.stringify(name)} is no run: it is a ${byId.type}${part}`);
}
