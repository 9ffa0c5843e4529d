import { setTimeout as delay } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import { DAMAGE } from '../../core/damage.ts';
import { GradusError, messageOf } from '../../core/errors.ts';
import { commandLine } from '../../core/installation.ts';
import { listExecutions, quotedInQuery, textAttribute } from '../temporal/executions.ts';
import { isNotFound } from '../temporal/describe.ts';
import type { Execution } from '../temporal/executions.ts';
import type { Sources } from '../sources.ts';
import { inParallel } from '../../store/in-parallel.ts';
import { isFileName, pinsKey, pinsPrefix, runKey, runPrefix } from '../../store/keys.ts';
import { runClaims } from '../../store/run/run-claim.ts';
import type { RunClaim } from '../../store/run/run-claim.ts';

/** What goes when a run is deleted. Verdicts of higher tiers are for all runs, and stay. */
export interface Deletion {
  run: string;
  executions: Execution[];
  /** Keys of all objects. */
  objects: string[];
  bytes: number;
  /** Whose the name is; null where it is nobody's any more. */
  owner: string | null;
  /** Why it is not deleted, in sentences; empty where it may be. */
  refusals: string[];
}

/** Workflows that are a part of a run, besides the run itself. */
const PARTS = [
  'supervised',
  'reward',
  'stage',
  'rolloutGroup',
  'followEpisodes',
  'evaluation',
  'verdictPage',
  'ladder',
  'reverify',
];
/** Workflows whose own the name is. */
const OWNERS = ['curriculum', 'evaluate'];
const owns = ({ type }: Execution): boolean => OWNERS.includes(type);
const OF_OWNERS = `WorkflowType IN (${OWNERS.map(quotedInQuery).join(', ')})`;
const MOST_EXECUTIONS = 1_000_000;

/**
 * What of a run there is, by its name in the store, or by the id of one that was refused a name. Throws
 * GradusError('store', 'no-run') where there is nothing.
 */
export async function planDeletion({ store, temporal }: Sources, run: string): Promise<Deletion> {
  const [executions, objects, claims] = await Promise.all([
    executionsOf(temporal, run),
    isFileName(run) ? store.list(runPrefix(run)) : [],
    claimsOf(store),
  ]);
  if (executions.length + objects.length === 0)
    throw new GradusError(
      'store',
      'no-run',
      `there is no run ${JSON.stringify(run)}; "${commandLine('runs')}" lists those there are`,
    );
  const others = [...claims].filter(([name]) => name !== run);
  const pins = objects.filter(({ key }) => key.startsWith(pinsPrefix(run)));
  return {
    run,
    executions,
    objects: objects.map(({ key }) => key),
    bytes: objects.reduce((sum, { bytes }) => sum + bytes, 0),
    owner: ownerOf(claims.get(run) ?? null),
    refusals: [
      ...goingOn(executions),
      ...pinnedBy(
        pins.map(({ key }) => key.slice(pinsPrefix(run).length, -'.json'.length)),
        claims,
      ),
      ...(await neededBy(temporal, run, others)),
    ],
  };
}

/**
 * Deletes a run that was looked at: what Temporal has first, the claim to the name last, so that one which was interrupted is gone
 * on with by the same command. Throws GradusError('store', 'in-use') where something is in its way, and GradusError('store',
 * 'another-run') where the name is another run's by now.
 */
export async function deleteRun(
  sources: Sources,
  { run, executions, owner, refusals }: Deletion,
): Promise<void> {
  if (refusals.length > 0) throw new GradusError('store', 'in-use', refusals.join('\n'));
  const { store, temporal } = sources;
  // The run itself last: it is what the others are found by.
  const parts = executions.filter((one) => !owns(one));
  const runs = executions.filter(owns);
  for (const some of [parts, runs]) await inParallel(some, (one) => deleteExecution(temporal, one));
  if (!isFileName(run)) return;
  const key = runKey(run);
  let claim: RunClaim | null;
  // Again, for an activity that was not called off in time may have written more.
  for (;;) {
    const keys = (await store.list(runPrefix(run))).map((one) => one.key).filter((one) => one !== key);
    // After the list was made: what begins under the name later is not on it.
    claim = await claimOf(store, key);
    if (!isStillOf(run, owner, claim)) return;
    if (keys.length === 0) break;
    await store.remove(keys);
  }
  // What it needed of other runs it needs no more.
  await store.remove(checkpointsNamed(claim).map((other) => pinsKey(other, run)));
  if (isStillOf(run, owner, await claimOf(store, key))) await store.remove([key]);
}

/**
 * Whether a name is still whose it was. It is nobody's when somebody else has deleted the run at the same time, and then a
 * run that begins may take it, whose objects have the same keys.
 */
function isStillOf(run: string, owner: string | null, claim: RunClaim | null): boolean {
  const now = ownerOf(claim);
  if (now === owner) return true;
  if (now === null) return false;
  throw new GradusError(
    'store',
    'another-run',
    `${run} was deleted by somebody else, and another run has begun under its name: it was left as it is`,
  );
}

const ownerOf = (claim: RunClaim | null): string | null =>
  claim && (claim.execution ?? claim.import ?? 'unreadable');

/** Everything that Temporal knows of the run of this name, and of no other one. */
async function executionsOf(temporal: Client, run: string): Promise<Execution[]> {
  const list = async (query: string): Promise<Execution[]> =>
    (await listExecutions(temporal, query, { limit: MOST_EXECUTIONS, timeoutMs: 60_000 })).executions;
  const name = quotedInQuery(run);
  const [begun, below] = await Promise.all([
    list(`${OF_OWNERS} AND (GradusRun = ${name} OR WorkflowId = ${name})`),
    list(
      `WorkflowId STARTS_WITH ${quotedInQuery(`${run}/`)} AND WorkflowType IN (${PARTS.map(quotedInQuery).join(', ')})`,
    ),
  ]);
  // An id can be used again: the run of that name is another one then.
  const own = begun.filter((one) => (textAttribute(one, 'GradusRun') ?? run) === run);
  return [...own, ...below];
}

const goingOn = (executions: readonly Execution[]): string[] =>
  executions
    .filter(({ status }) => status === 'running' || status === 'paused')
    .filter((one, _, all) => owns(one) || !all.some(owns))
    .map(({ workflowId, type }) =>
      type === 'curriculum'
        ? `it goes on: stop it first, with "${commandLine(`stop ${workflowId}`)}"`
        : type === 'evaluate'
          ? `it goes on: end it first, with "temporal workflow cancel --workflow-id ${workflowId}"`
          : `its ${type} ${workflowId} goes on, for verdicts that are still to come: end it first, with "temporal workflow cancel --workflow-id ${workflowId}"`,
    );

async function claimsOf(store: Sources['store']): Promise<Map<string, RunClaim>> {
  const { folders } = await store.listFolder('runs/');
  const names = folders.map((folder) => folder.slice('runs/'.length, -1));
  const claims = await inParallel(names, (name) => claimOf(store, runKey(name)));
  return new Map(names.flatMap((name, i) => (claims[i] ? [[name, claims[i]] as const] : [])));
}

/** One that is damaged is one all the same, and says nothing. */
async function claimOf(store: Sources['store'], key: string): Promise<RunClaim | null> {
  try {
    return await store.find(key, runClaims);
  } catch (error) {
    if (error instanceof GradusError && DAMAGE.has(error.type)) return { spec: null };
    throw error;
  }
}

/** A pin of a run that was deleted keeps nothing. */
const pinnedBy = (names: readonly string[], claims: ReadonlyMap<string, RunClaim>): string[] =>
  names
    .filter((name) => claims.has(name))
    .map((name) => `${name} needs its checkpoints: delete that one first`);

/** Runs that go on and read what it has stored: a model that they begin with, episodes that they learn from, what they follow. */
async function neededBy(
  temporal: Client,
  run: string,
  others: readonly (readonly [string, RunClaim])[],
): Promise<string[]> {
  const needing = others.filter(([, { spec }]) => spec !== null && reads(spec, run)).map(([name]) => name);
  if (needing.length === 0) return [];
  const query = `${OF_OWNERS} AND ExecutionStatus = "Running" AND GradusRun IN (${needing.map(quotedInQuery).join(', ')})`;
  const { executions } = await listExecutions(temporal, query);
  return executions.map(
    (one) =>
      `${textAttribute(one, 'GradusRun')} goes on, and reads what this one has stored: wait for its end`,
  );
}

export function reads(
  { model, stages }: Pick<NonNullable<RunClaim['spec']>, 'model' | 'stages'>,
  run: string,
): boolean {
  return (
    (model?.kind === 'from' && model.checkpoint.manifest.key.startsWith(runPrefix(run))) ||
    stages.some(
      (stage) =>
        (stage.kind === 'rl' && stage.collect?.kind === 'stored' && stage.collect.run === run) ||
        (stage.kind === 'rl' && stage.collect?.kind === 'asynchronous' && stage.collect.follow === run) ||
        (stage.kind === 'reward' && stage.episodes.run === run),
    )
  );
}

/** Runs whose checkpoints a run has named. */
function checkpointsNamed(claim: RunClaim | null): string[] {
  const keys = Object.values(claim?.spec?.checkpoints ?? {}).map(({ manifest }) => manifest.key);
  return [...new Set(keys.map((key) => key.split('/')[1]!))];
}

/** A server that has much to do, or whose tasks of the workflow's end are still waiting, takes more than half a minute. */
const GONE_WITHIN_MS = 120_000;

/** The server deletes in its own time; until it has, what was deleted would be found again. */
async function deleteExecution(temporal: Client, { workflowId, runId }: Execution): Promise<void> {
  const execution = { workflowId, runId };
  const { namespace } = temporal.options;
  const until = performance.now() + GONE_WITHIN_MS;
  try {
    await temporal.workflowService.deleteWorkflowExecution({ namespace, workflowExecution: execution });
    for (;;) {
      await temporal.workflowService.describeWorkflowExecution({ namespace, execution });
      if (performance.now() > until) break;
      await delay(50);
    }
  } catch (error) {
    if (isNotFound(error)) return;
    throw new GradusError(
      'infra',
      'temporal-delete',
      `${workflowId} could not be deleted: ${messageOf(error)}`,
      {
        retryable: true,
        cause: error,
      },
    );
  }
  throw new GradusError(
    'infra',
    'temporal-delete',
    `Temporal has not deleted ${workflowId} (${runId}) within ${GONE_WITHIN_MS / 1000} s: give the same command again`,
    { retryable: true },
  );
}
