import { runStatusOf } from './runs.ts';
import { setTimeout as delay } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import { inParallel } from '../../store/in-parallel.ts';
import { listExecutions, textAttribute } from '../temporal/executions.ts';
import type { Execution } from '../temporal/executions.ts';
import { whyInWords } from './why-in-words.ts';
import { busyQueues, endOfRun, whyOfExecution } from './why.ts';
import type { BusyQueues, Reason } from './why.ts';

// What somebody should know who does not look: each thing is told once, and once more when it is over.

type AlertKind = 'question' | 'failed' | 'review' | 'retry' | 'no-worker';

/** Something that is so just now. */
export interface Notice {
  /** The same as long as it is the same. */
  key: string;
  kind: AlertKind;
  /** The run's name, or its workflow's id before it has one; null of what no run is known for. */
  run: string | null;
  text: string;
  /** Of a retry. */
  attempt?: number;
}

export interface Alert {
  kind: AlertKind;
  run: string | null;
  text: string;
  /** It is so no more. */
  over: boolean;
  /** ISO 8601. */
  at: string;
}

/** What was seen at one time. */
export interface AlertObservation {
  /** Epoch milliseconds. */
  at: number;
  notices: Notice[];
  /** Whether these are all notices of a run; of others nothing is known. null stands for what belongs to none. */
  looked: (run: string | null) => boolean;
}

interface SentAlert {
  notice: Notice;
  /** Attempts from which on it is told again; absent until it has been told. */
  next?: number;
}

/** What has been seen, and told. */
export type Memory = ReadonlyMap<string, SentAlert>;

/**
 * What is to be told of an observation after all that was told before. A retry is told from its `retries`th attempt on,
 * and then each time that their number has doubled; a worker counts as missing when it is so twice.
 */
export function alertsOf(
  memory: Memory,
  { at, notices, looked }: AlertObservation,
  retries: number,
): { alerts: Alert[]; memory: Memory } {
  const alerts: Alert[] = [];
  const now = new Map<string, SentAlert>();
  const tell = ({ kind, run, text }: Notice, over: boolean): void =>
    void alerts.push({ kind, run, text, over, at: new Date(at).toISOString() });
  for (const notice of notices) {
    const before = memory.get(notice.key);
    const attempt = notice.attempt ?? Infinity;
    const due =
      before?.next !== undefined
        ? attempt !== Infinity && attempt >= before.next
        : isDue(notice, before, retries);
    if (due) tell(notice, false);
    const next = !due ? before?.next : attempt === Infinity ? Infinity : doubled(retries, attempt);
    now.set(notice.key, { notice, ...(next !== undefined && { next }) });
  }
  for (const [key, told] of memory) {
    if (now.has(key)) continue;
    // Whoever was not looked at may be in the same plight.
    if (!looked(told.notice.run)) now.set(key, told);
    else if (told.next !== undefined && told.notice.kind !== 'failed') tell(told.notice, true);
  }
  return { alerts, memory: now };
}

function isDue({ kind, attempt = 0 }: Notice, before: SentAlert | undefined, retries: number): boolean {
  if (kind === 'retry') return attempt >= retries;
  return kind !== 'no-worker' || before !== undefined;
}

/** The first of n, 2n, 4n, … that is greater. */
const doubled = (n: number, attempt: number): number => {
  let next = n;
  while (next <= attempt) next *= 2;
  return next;
};

/** Nobody waits for an alert as for a page. */
const PATIENCE_MS = 2000;
/** Runs that are looked at each time. */
const MOST_RUNS = 30;
/** Characters of why a run has failed. */
const LONGEST_WHY = 500;

export interface WatchOptions {
  signal: AbortSignal;
  intervalMs?: number;
  /** Attempts from which on a retry is told. */
  retries?: number;
}

/**
 * Alerts as they come, until the signal is aborted. While Temporal is away there are none: what was so is taken to be so
 * still.
 */
export async function* watchAlerts(
  temporal: Client,
  { signal, intervalMs = 5000, retries = 5 }: WatchOptions,
): AsyncGenerator<Alert> {
  const since = Date.now();
  let memory: Memory = new Map();
  while (!signal.aborted) {
    const seen = await observeNow(temporal, since).catch(() => null);
    if (seen !== null) {
      const told = alertsOf(memory, seen, retries);
      memory = told.memory;
      yield* told.alerts;
    }
    // Only the signal ends it early.
    await delay(intervalMs, undefined, { signal }).catch(() => undefined);
  }
}

const RUNNING = 'WorkflowType = "curriculum" AND ExecutionStatus = "Running"';

/** What is so now, and which runs have failed since. Throws what Temporal throws while it is away. */
async function observeNow(temporal: Client, since: number): Promise<AlertObservation> {
  const at = Date.now();
  const failed = `WorkflowType = "curriculum" AND ExecutionStatus IN ("Failed", "TimedOut") AND CloseTime >= "${new Date(since).toISOString()}"`;
  const [running, over, reviews] = await Promise.all([
    listExecutions(temporal, RUNNING, { limit: MOST_RUNS }),
    listExecutions(temporal, failed, { limit: MOST_RUNS }),
    listExecutions(temporal, 'WorkflowType = "review" AND ExecutionStatus = "Running"'),
  ]);
  const busy = busyQueues(temporal, at);
  const looked = await inParallel(running.executions, (one) => lookAt(temporal, one, at, busy));
  const ends = await inParallel(over.executions, async (one): Promise<Notice> => {
    const run = nameOf(one);
    const why = await endOfRun(temporal, one, LONGEST_WHY);
    const what = runStatusOf(one) === 'refused' ? 'was refused' : 'has failed';
    const text = `${run} ${what}${why === null ? '' : `: ${why}`}`;
    return { key: `failed/${one.workflowId}/${one.runId}`, kind: 'failed', run, text };
  });
  const open = reviews.executions.map((one): Notice => {
    const run = textAttribute(one, 'GradusRun');
    const text = `a verdict of people is asked for${run === null ? '' : ` by ${run}`}: ${one.workflowId}`;
    return { key: `review/${one.workflowId}`, kind: 'review', run: null, text };
  });
  const known = looked.filter((one) => one !== null);
  // A run that is over waits for nothing any more.
  const goingOn = new Set(running.executions.map(nameOf));
  return {
    at,
    notices: [...known.flatMap(({ notices }) => notices), ...ends, ...open],
    looked: (run) => run === null || !goingOn.has(run) || known.some((one) => one.whole && one.run === run),
  };
}

const nameOf = (execution: Execution): string =>
  textAttribute(execution, 'GradusRun') ?? execution.workflowId;

/** null where it cannot be looked at just now. */
async function lookAt(
  temporal: Client,
  execution: Execution,
  at: number,
  busy: BusyQueues,
): Promise<{ run: string; notices: Notice[]; whole: boolean } | null> {
  const run = nameOf(execution);
  try {
    const options = { patienceMs: PATIENCE_MS, busy };
    const { reasons, problems } = await whyOfExecution(temporal, execution, at, options);
    return { run, notices: noticesOf(run, reasons, at), whole: problems.length === 0 };
  } catch {
    return null;
  }
}

export function noticesOf(run: string, reasons: readonly Reason[], at: number): Notice[] {
  const notices = new Map<string, Notice>();
  for (const reason of reasons) {
    const text = `${run}: ${whyInWords(reason, at)}`;
    const notice = noticeOf(run, reason, text);
    if (notice === null) continue;
    const same = notices.get(notice.key);
    if (same === undefined || (same.attempt ?? 0) < (notice.attempt ?? 0)) notices.set(notice.key, notice);
  }
  return [...notices.values()];
}

function noticeOf(run: string, reason: Reason, text: string): Notice | null {
  switch (reason.kind) {
    case 'question': {
      // Which one it is will be known when a worker answers.
      const id = reason.question?.id;
      return id === undefined ? null : { key: `question/${run}/${id}`, kind: 'question', run, text };
    }
    case 'retry':
    case 'workflow-fails': {
      const what = reason.kind === 'retry' ? reason.activity : reason.workflow;
      return { key: `retry/${run}/${what}`, kind: 'retry', run, text, attempt: reason.attempt };
    }
    case 'no-worker':
      // Something has to wait for it.
      return reason.count === 0
        ? null
        : { key: `no-worker/${run}/${reason.queue}/${reason.serves}`, kind: 'no-worker', run, text };
    default:
      return null;
  }
}
