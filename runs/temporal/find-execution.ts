import type { Client } from '@temporalio/client';
import { GradusError } from '../../core/errors.ts';
import { assertRun } from '../../store/run/find-run.ts';
import { isFileName } from '../../store/keys.ts';
import { executionOf, listExecutions, quotedInQuery, textAttribute } from './executions.ts';
import type { Execution } from './executions.ts';
import { fromTemporal } from './from-temporal.ts';
import type { Sources } from '../sources.ts';

/** How long Temporal is waited for: a page must not hang with it, a command has nothing else to show. */
const PATIENCE_MS = { page: 2000, command: 10_000 };

/**
 * The newest execution of a run, by its name in the store alone; null where Temporal knows none. A second run of a name
 * gets a number after it, so that the workflow of that id may be another run's.
 * Throws GradusError('infra', 'temporal-unreachable').
 */
export async function executionOfRun(temporal: Client, run: string): Promise<Execution | null> {
  return fromTemporal(temporal, PATIENCE_MS.page, async () => {
    const byId = await executionOf(temporal, run);
    // One that has only just begun does not say yet which run it is.
    const isIt = byId?.type === 'curriculum' && (textAttribute(byId, 'GradusRun') ?? run) === run;
    return isIt ? byId : newestOf(temporal, run);
  });
}

/**
 * The newest execution of a run as a person names it, by its workflow's id or by its name in the store; null where Temporal
 * knows none. Throws GradusError('spec', 'no-run') for the id of another workflow, and
 * GradusError('infra', 'temporal-unreachable').
 */
export async function findExecution(temporal: Client, name: string): Promise<Execution | null> {
  return fromTemporal(temporal, PATIENCE_MS.command, async () => {
    const byId = await executionOf(temporal, name);
    if (byId?.type === 'curriculum') return byId;
    const newest = await newestOf(temporal, name);
    if (newest !== null || byId === null) return newest;
    const run = textAttribute(byId, 'GradusRun');
    const part = run === null ? '' : ` and belongs to the run ${run}`;
    throw new GradusError('spec', 'no-run', `${JSON.stringify(name)} is no run: it is a ${byId.type}${part}`);
  });
}

/** The same. Throws GradusError('store', 'no-run') with the nearest name where the store knows no such run, either. */
export async function findRun({ store, temporal }: Sources, name: string): Promise<Execution | null> {
  const found = await findExecution(temporal, name);
  if (found !== null) return found;
  if (!isFileName(name)) throw new GradusError('store', 'no-run', `there is no run ${JSON.stringify(name)}`);
  await assertRun(store, name);
  return null;
}

/** One that goes on, before those that are over. */
async function newestOf(temporal: Client, run: string): Promise<Execution | null> {
  const query = `WorkflowType = "curriculum" AND GradusRun = ${quotedInQuery(run)} AND ExecutionStatus != "ContinuedAsNew"`;
  const { executions } = await listExecutions(temporal, query, { limit: 10 });
  const [newest] = executions.toSorted(
    (a, b) => Number(b.closedAt === null) - Number(a.closedAt === null) || b.startedAt - a.startedAt,
  );
  return newest ?? null;
}
