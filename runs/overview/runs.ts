import { setMaxListeners } from 'node:events';
import type { Client } from '@temporalio/client';
import { messageOf } from '../../core/errors.ts';
import { inParallel } from '../../store/in-parallel.ts';
import type { OpenQuestion } from '../../core/question.ts';
import { measuredShare } from '../../core/statistics/measured.ts';
import type { Measured } from '../../core/statistics/measured.ts';
import { total } from '../../core/training/stage-policy.ts';
import type { HeldOutFacts } from '../../core/training/step-facts.ts';
import type { CurriculumSpec } from '../../core/schema/curriculum-spec.ts';
import type { Progress } from '../../workflows/control/messages.ts';
import { isFileName, runKey } from '../../store/keys.ts';
import { runClaims } from '../../store/run/run-claim.ts';
import { unlessDamaged } from '../../store/objects/unless-damaged.ts';
import { askLadder, askProgress } from '../temporal/ask.ts';
import { listExecutions, numberAttribute, textAttribute } from '../temporal/executions.ts';
import type { Execution } from '../temporal/executions.ts';
import { belowGoal, standingAlarms } from './concerns.ts';
import type { Concern } from './concerns.ts';
import { lastStep } from './last-step.ts';
import type { Sources } from '../sources.ts';
import { spentInLedger, spentOf } from './spend.ts';
import type { SpentOnVerdicts } from './spend.ts';
import { whyAway } from '../temporal/temporal-away.ts';
import { timeoutSignal } from '../../core/timeout-signal.ts';

export type RunStatus =
  | Progress['status']
  /** It failed before it had a name in the store: its spec was wrong, or the name another run's. */
  | 'refused'
  | 'terminated'
  | 'timed-out'
  /** Only the store knows it: Temporal keeps what is over for a while. */
  | 'forgotten'
  /** The store knows it, and Temporal, which would say more, is away. */
  | 'unknown'
  /** No run: a model that was brought in under this name. */
  | 'imported'
  /** No run: a checkpoint was measured under this name. */
  | 'evaluation';

/** A run at a glance. */
export interface RunRow {
  /** What it is called in the store; null of one that has not claimed a name, or was refused one. */
  run: string | null;
  /** null where Temporal has forgotten it. */
  workflowId: string | null;
  status: RunStatus;
  /** Where status, stage and step are from. Without an answer of the run itself they may be some seconds old. */
  from: 'progress' | 'visibility' | 'store';
  stage: string | null;
  /** Of the run, from 1. */
  step: number | null;
  /** Of the stage. */
  stageStep: number | null;
  maxSteps: number | null;
  /** Of the newest measurement. */
  heldOut: (Measured & { confidence: number }) | null;
  question: OpenQuestion | null;
  /** Alarms that stand, and a goal that a run which has completed is below: then its status alone would look healthy. */
  concerns: Concern[];
  /** Kinds of activities that are at their third attempt or a later one; null where the run does not say. */
  retrying: number | null;
  /** Epoch milliseconds. */
  startedAt: number | null;
  endedAt: number | null;
  /** What verdicts have cost; null where there is no ladder, or what it spent is not known. */
  spend: SpentOnVerdicts | null;
}

export interface RunList {
  /** Those that wait for a person first, then those that go on, then what is over, the newest first. */
  rows: RunRow[];
  /** How many there are; `rows` has no more than was asked for. */
  total: number;
  /** What could not be had, in sentences. */
  problems: string[];
  /** Who did not answer at all. */
  away: ('temporal' | 'store')[];
}

export interface RunsOptions {
  /** Rows at most; each takes some requests. */
  limit?: number;
  /** After this time rows are shown as far as they are known; what lists them is waited for as long before. */
  patienceMs?: number;
}

const OF_RUNS = 'WorkflowType = "curriculum" AND ExecutionStatus != "ContinuedAsNew"';
const OF_LADDERS = 'WorkflowType = "ladder" AND ExecutionStatus = "Running"';
/** More than anyone reads; of more than these the oldest are left out. */
const MOST_EXECUTIONS = 5000;
const STATUSES: readonly string[] = ['running', 'paused', 'stopping', 'waiting'] satisfies RunStatus[];
/** Runs that are asked what they are at, all at once. */
const MOST_ASKED = 32;
const CONFIDENCE = 0.95;

/** All runs that Temporal or the store know. Where one of them does not answer it says so, and gives what the other has. */
export async function readRuns(
  sources: Sources,
  { limit = 50, patienceMs = 1500 }: RunsOptions = {},
): Promise<RunList> {
  const { store, temporal } = sources;
  const listing = timeoutSignal(patienceMs);
  const problems: string[] = [];
  const away: RunList['away'] = [];
  const orNothing = async <T>(who: RunList['away'][number], nothing: T, read: Promise<T>): Promise<T> => {
    try {
      return await read;
    } catch (error) {
      away.push(who);
      if (who === 'temporal') problems.push(`Temporal does not answer: ${whyAway(temporal, error)}`);
      else
        problems.push(
          `the store does not answer: ${listing.aborted ? 'no answer in time' : messageOf(error)}`,
        );
      return nothing;
    }
  };
  const nobody = { executions: [] as Execution[], more: false };
  const [runs, ladders, folders] = await Promise.all([
    orNothing(
      'temporal',
      nobody,
      listExecutions(temporal, OF_RUNS, { limit: MOST_EXECUTIONS, timeoutMs: patienceMs }),
    ),
    listExecutions(temporal, OF_LADDERS, { timeoutMs: patienceMs }).catch(() => nobody),
    orNothing(
      'store',
      [],
      store.listFolder('runs/', { signal: listing }).then((found) => found.folders),
    ),
  ]);
  if (runs.more) problems.push(`only the newest ${MOST_EXECUTIONS} runs of Temporal are listed`);
  const begun = rowsOf(runs.executions);
  const known = new Set(begun.map(({ run }) => run));
  const stored = folders.map((folder) => folder.slice('runs/'.length, -1));
  const elsewhere = stored.filter((run) => !known.has(run));
  const status = away.includes('temporal') ? 'unknown' : 'forgotten';
  const all = runsInOrder([...begun, ...elsewhere.map((run) => storedRow(run, status))]);
  const shown = all.slice(0, limit);
  const progressByRow = away.includes('temporal')
    ? new Map<RunRow, Progress>()
    : await askAll(temporal, shown);
  const signal = timeoutSignal(patienceMs);
  // Every request listens to it.
  setMaxListeners(0, signal);
  const look: Look = {
    ...sources,
    signal,
    ladders: new Set(ladders.executions.map((ladder) => textAttribute(ladder, 'GradusRun'))),
    // That something of one run is damaged or late hides no other.
    problem: (text) => void (signal.aborted || problems.includes(text) || problems.push(text)),
  };
  const rows = await inParallel(shown, (row) => lookUp(look, row, progressByRow.get(row) ?? null));
  if (signal.aborted) problems.push('some rows were not looked up in time');
  return { rows: runsInOrder(rows), total: all.length, problems, away };
}

/** What those that go on say, as far as they say it at once. */
async function askAll(temporal: Client, rows: readonly RunRow[]): Promise<Map<RunRow, Progress>> {
  const going = rows.filter(({ workflowId, endedAt }) => workflowId !== null && endedAt === null);
  const progressByRow = new Map<RunRow, Progress>();
  await Promise.all(
    going.slice(0, MOST_ASKED).map(async (row) => {
      const progress = await askProgress(temporal, row.workflowId!);
      if (progress !== null) progressByRow.set(row, progress);
    }),
  );
  return progressByRow;
}

interface Look extends Sources {
  signal: AbortSignal;
  /** Runs whose ladder goes on. */
  ladders: ReadonlySet<string | null>;
  problem: (text: string) => void;
}

/** A row with what the run, its ladder and the store say. */
async function lookUp(look: Look, listed: RunRow, progress: Progress | null): Promise<RunRow> {
  const { store, signal } = look;
  const damaged: string[] = [];
  // Before its spec is read a run has no name in the store, though it answers.
  const run = progress === null ? listed.run : progress.phase === 'spec' ? null : progress.run;
  // Whoever starts a workflow may have written a name there that none in the store can have.
  const claim =
    run !== null && isFileName(run)
      ? await orNull(look, () => unlessDamaged(damaged, () => store.find(runKey(run), runClaims, { signal })))
      : null;
  const row = { ...listed, run, ...(progress && reportedBy(progress)) };
  damaged.forEach(look.problem);
  if (run === null || (claim === null && damaged.length === 0)) return row;
  // Of one whose claim is damaged its steps may be sound.
  const spec = claim?.spec ?? null;
  if (claim !== null && row.workflowId === null && spec === null) return { ...row, status: 'imported' };
  if (claim?.evaluation !== undefined) return { ...row, status: 'evaluation' };
  const [spend, facts] = await Promise.all([
    spec?.verification === undefined ? null : spendOf(look, run, progress !== null),
    progress === null ? orNull(look, () => lastStep(store, run, spec, { signal })) : null,
  ]);
  return { ...row, ...(facts && byFacts(row, facts, spec)), spend };
}

/** Of a ladder that goes on and has workers by its own word, and by the ledger of what others wrote; else by all of it. */
async function spendOf(look: Look, run: string, served: boolean): Promise<SpentOnVerdicts | null> {
  const { store, temporal, ladders, signal } = look;
  const status = served && ladders.has(run) ? await askLadder(temporal, run) : null;
  const own = status && spentOf(status.totals);
  const written = await orNull(look, () => spentInLedger(store, run, { beside: own !== null, signal }));
  if (own === null || written === null) return written;
  return {
    seconds: own.seconds + written.seconds,
    usd: own.usd + written.usd,
    openSeconds: own.openSeconds + written.openSeconds,
  };
}

async function orNull<T>({ problem }: Look, read: () => Promise<T>): Promise<T | null> {
  try {
    return await read();
  } catch (error) {
    problem(messageOf(error));
    return null;
  }
}

/** One row for each run of each workflow id: a run that was reset has several executions. */
function rowsOf(executions: readonly Execution[]): RunRow[] {
  const rows = new Map<string, RunRow>();
  for (const execution of executions.toSorted((a, b) => b.startedAt - a.startedAt)) {
    const row = rowOf(execution);
    // What has no name was refused: it is told apart by nothing but its execution.
    const name = row.run ?? `/${execution.runId}`;
    const key = JSON.stringify([row.workflowId, name]);
    const newer = rows.get(key);
    if (newer === undefined) rows.set(key, row);
    else newer.startedAt = row.startedAt;
  }
  return [...rows.values()];
}

function rowOf(execution: Execution): RunRow {
  return {
    ...NOTHING_KNOWN,
    run: textAttribute(execution, 'GradusRun'),
    workflowId: execution.workflowId,
    status: runStatusOf(execution),
    from: 'visibility',
    stage: textAttribute(execution, 'GradusStage'),
    step: numberAttribute(execution, 'GradusStep'),
    startedAt: execution.startedAt,
    endedAt: execution.closedAt,
  };
}

const NOTHING_KNOWN: Omit<RunRow, 'run' | 'workflowId' | 'status' | 'from'> = {
  stage: null,
  step: null,
  stageStep: null,
  maxSteps: null,
  heldOut: null,
  question: null,
  concerns: [],
  retrying: null,
  startedAt: null,
  endedAt: null,
  spend: null,
};

const storedRow = (run: string, status: 'forgotten' | 'unknown'): RunRow => ({
  ...NOTHING_KNOWN,
  run,
  workflowId: null,
  status,
  from: 'store',
});

/** What a run was at when it said so last, unless Temporal knows that it is over. */
export function runStatusOf(execution: Execution): RunStatus {
  const text = textAttribute(execution, 'GradusStatus');
  switch (execution.status) {
    case 'completed':
      return text === 'stopped' || text === 'no-success' ? text : 'completed';
    case 'failed':
      return textAttribute(execution, 'GradusRun') === null ? 'refused' : 'failed';
    case 'cancelled':
    case 'terminated':
    case 'timed-out':
      return execution.status;
    case 'paused':
      return 'paused';
    default:
      return text !== null && STATUSES.includes(text) ? (text as RunStatus) : 'running';
  }
}

/** null where nothing could be judged: that is no success of 0. */
function heldOutOf(heldOut: Pick<HeldOutFacts, 'arms'> | null): RunRow['heldOut'] {
  const all = total(heldOut?.arms ?? []);
  return all.trials === 0 ? null : { ...measuredShare(all, CONFIDENCE), confidence: CONFIDENCE };
}

export function reportedBy(progress: Progress): Partial<RunRow> {
  const { status, phase, question, step, heldOut, retrying } = progress;
  return {
    status,
    from: 'progress',
    stage: phase,
    question,
    retrying: retrying.length,
    ...(step && { step: step.step }),
    ...(step?.stage === phase && { stageStep: step.stageStep, maxSteps: step.maxSteps }),
    heldOut: heldOutOf(heldOut),
    concerns: step === null ? [] : standingAlarms([{ ...step, alarms: step.alarms ?? [] }]),
  };
}

const CAME_TO_ITS_END: ReadonlySet<RunStatus> = new Set(['completed', 'no-success', 'stopped']);

/** What the store adds to a row of a run that does not answer. */
export function byFacts(
  row: RunRow,
  { step, heldOut }: NonNullable<Awaited<ReturnType<typeof lastStep>>>,
  spec: CurriculumSpec | null,
): Partial<RunRow> {
  const { stageStep, maxSteps } = step;
  // Of what has come to its end nobody asks whether the report was the last thing that it did.
  const stage = row.stage === null || CAME_TO_ITS_END.has(row.status) ? step.stage : row.stage;
  return {
    stage,
    step: row.step ?? step.step,
    ...(stage === step.stage && { stageStep, maxSteps }),
    heldOut: heldOutOf(heldOut),
    concerns: [
      ...standingAlarms([step]),
      ...(row.status === 'completed' ? belowGoal(step, heldOut, spec) : []),
    ],
    // When Temporal has forgotten it, its last step is the last that is known of it.
    endedAt: row.status === 'forgotten' ? step.circumstances.endedAt : row.endedAt,
  };
}

const rank = ({ status, endedAt }: RunRow): number => {
  if (status === 'waiting') return 0;
  if (status === 'imported' || status === 'evaluation') return 4;
  if (status === 'forgotten') return 3;
  return endedAt === null ? 1 : 2;
};

export const runsInOrder = (rows: readonly RunRow[]): RunRow[] =>
  rows.toSorted(
    (a, b) =>
      rank(a) - rank(b) ||
      (b.endedAt ?? b.startedAt ?? 0) - (a.endedAt ?? a.startedAt ?? 0) ||
      ((a.run ?? a.workflowId ?? '') < (b.run ?? b.workflowId ?? '') ? -1 : 1),
  );
