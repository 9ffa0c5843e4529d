import type { Client } from '@temporalio/client';
import { GradusError, isA, messageOf } from '../../core/errors.ts';
import { QUEUES } from '../../core/names.ts';
import type { OpenQuestion } from '../../core/question.ts';
import type { Progress } from '../../workflows/control/messages.ts';
import type { ReviewState } from '../../workflows/ladder/review-state.ts';
import { specOfRun } from '../../store/run/find-run.ts';
import { askWorkflow, askLadder, askProgress } from '../temporal/ask.ts';
import { listExecutions, quotedInQuery, textAttribute } from '../temporal/executions.ts';
import type { Execution } from '../temporal/executions.ts';
import { findRun } from '../temporal/find-execution.ts';
import type { Heartbeat } from '../temporal/heartbeats.ts';
import { lastStep } from './last-step.ts';
import type { LastStep } from './last-step.ts';
import { pendingOf } from '../temporal/pending.ts';
import type { Pending, PendingActivity, PendingTask } from '../temporal/pending.ts';
import { pollersOf, serverOf } from '../temporal/pollers.ts';
import type { Poller } from '../temporal/pollers.ts';
import { runStatusOf } from './runs.ts';
import type { RunStatus } from './runs.ts';
import type { Sources } from '../sources.ts';
import { faultOf } from '../temporal/temporal-values.ts';

// Why a run is where it is. Slow and hung look the same from afar; they differ in signs of life, attempts, and whether
// anybody asks the queue for work, all of which Temporal knows, also while there is no worker that could be asked.

/** Moments are epoch milliseconds. Activities of one kind that are in the same plight are one reason. */
export type Reason =
  /** A person's answer; null where no worker can say what is asked. */
  | { kind: 'question'; question: OpenQuestion | null }
  /** Verdicts of people. Numbers and deadline are null where no worker can say them. */
  | {
      kind: 'review';
      id: string;
      verifier: string | null;
      given: number | null;
      reviewers: number | null;
      deadline: string | null;
    }
  /** Nobody takes what is in the queue. `sure` is false while whoever asked last may still come back. */
  | {
      kind: 'no-worker';
      queue: string;
      serves: 'workflows' | 'activities';
      /** What waits: types of activities, or ids of workflows. */
      what: string[];
      count: number;
      since: number | null;
      lastAsked: number | null;
      sure: boolean;
    }
  /** A workflow that workers fail to execute, as when its code has changed. */
  | { kind: 'workflow-fails'; workflow: string; attempt: number; failure: string | null; since: number }
  /** Tried again and again. `nextAt` is null while it is being tried. */
  | ({ kind: 'retry'; failure: string; nextAt: number | null } & Several)
  /** Running, and overdue with its sign of life. */
  | ({ kind: 'silent'; heartbeatAt: number | null; heartbeatSeconds: number } & Several)
  | { kind: 'paused' }
  | { kind: 'stopping' }
  /** Verdicts of a tier that are being computed, or wait for a place. `verifier` is null of those that others have asked for. */
  | { kind: 'verdicts'; verifier: string | null; count: number }
  /** In a queue that is served: everybody is busy with something else. */
  | ({ kind: 'queued' } & Several)
  | ({ kind: 'works'; heartbeatAt: number | null; said: Heartbeat[]; workers: string[] } & Several)
  | { kind: 'paused-activity'; activity: string; workflow: string }
  | { kind: 'over'; status: RunStatus; failure: string | null; at: number | null }
  /** Nothing is in flight: it is between two activities, or waits for a clock or a message. */
  | { kind: 'nothing' }
  /** Temporal is away, and the store does not know. */
  | { kind: 'unknown'; lastStepAt: number | null };

interface Several {
  activity: string;
  queue: string | null;
  /** One of the workflows that wait for it. */
  workflow: string;
  count: number;
  /** The most attempts of any of them. */
  attempt: number;
  /** The longest of them. */
  since: number | null;
}

export interface Why {
  workflowId: string | null;
  /** In the store; null where it has no name yet, or cannot say it. */
  run: string | null;
  status: RunStatus;
  stage: string | null;
  step: number | null;
  /** What needs somebody first. */
  reasons: Reason[];
  /** What could not be had, in sentences. */
  problems: string[];
}

const PATIENCE_MS = 10_000;
/** A run that has workers answers within it, on a busy machine, too. */
const ANSWERS_WITHIN_MS = 1500;
/** Reviews that are asked how far they are, and workflows of verdicts that are looked at. */
const MOST_LOOKED_AT = 20;
/** Workflows that are looked at to tell a busy worker from one that is gone. */
const MOST_BUSY = 100;
/** A sign of life that is a part of its time overdue is nothing yet. */
const OVERDUE = 0.7;

/**
 * What a run waits for, by the id of its workflow or its name in the store. Where Temporal does not answer it is what the
 * store has of the run. Throws GradusError('store' | 'spec', 'no-run'), and GradusError('infra', 'temporal-unreachable')
 * where the store has nothing of it, either.
 */
export async function whyOf(sources: Sources, name: string, now = Date.now()): Promise<Why> {
  const { temporal } = sources;
  let found: Execution | null;
  try {
    found = await findRun(sources, name);
  } catch (error) {
    if (!isA(error, GradusError) || error.type !== 'temporal-unreachable') throw error;
    return storedOf(sources, name, error);
  }
  if (found === null) {
    const over = { kind: 'over', status: 'forgotten', failure: null, at: null } as const;
    const nothing = { stage: null, step: null, problems: [] };
    return { workflowId: null, run: name, status: 'forgotten', reasons: [over], ...nothing };
  }
  return temporal.withDeadline(Date.now() + PATIENCE_MS, () => whyOfExecution(temporal, found, now));
}

/** Throws `away` where the store does not know the run by this name, or is away as well. */
async function storedOf({ store }: Sources, name: string, away: GradusError): Promise<Why> {
  const last = async (): Promise<LastStep | null> =>
    lastStep(store, name, await specOfRun(store, name, { damaged: [] }));
  const known = await last().catch((error: unknown) => {
    throw isA(error, GradusError) ? away : error;
  });
  return {
    workflowId: null,
    run: name,
    status: 'unknown',
    stage: known?.step.stage ?? null,
    step: known?.step.step ?? null,
    reasons: [{ kind: 'unknown', lastStepAt: known?.step.circumstances.endedAt ?? null }],
    problems: [away.message],
  };
}

/**
 * Queues for which something is being done just now, in whichever run. It is looked up once, when it is first asked for:
 * that takes a request for each workflow that goes on.
 */
export type BusyQueues = () => Promise<ReadonlySet<string>>;

export function busyQueues(temporal: Client, now: number): BusyQueues {
  let found: Promise<ReadonlySet<string>> | undefined;
  const look = async (): Promise<ReadonlySet<string>> => {
    const limit = MOST_BUSY;
    const { executions } = await listExecutions(temporal, 'ExecutionStatus = "Running"', { limit });
    const ids = executions.map(({ workflowId }) => workflowId);
    const { activities } = await pendingOf(temporal, ids, { most: limit });
    return new Set(activities.filter((one) => isInHand(one, now)).flatMap(({ queue }) => queue ?? []));
  };
  return () => (found ??= look());
}

export interface WhyOptions {
  /** How long the run itself is waited for, which takes a worker. */
  patienceMs?: number;
  busy?: BusyQueues;
}

export async function whyOfExecution(
  temporal: Client,
  execution: Execution,
  now: number,
  { patienceMs = ANSWERS_WITHIN_MS, busy = busyQueues(temporal, now) }: WhyOptions = {},
): Promise<Why> {
  const base = {
    workflowId: execution.workflowId,
    run: textAttribute(execution, 'GradusRun'),
    status: runStatusOf(execution),
    stage: textAttribute(execution, 'GradusStage'),
    step: (execution.attributes['GradusStep'] as number | undefined) ?? null,
  };
  if (execution.closedAt !== null) {
    const failure = await endOfRun(temporal, execution);
    const over = { kind: 'over', status: base.status, failure, at: execution.closedAt } as const;
    return { ...base, reasons: [over], problems: [] };
  }
  const problems: string[] = [];
  const { workflowId, run } = base;
  const known = async () => {
    const verdicts = run === null ? [] : await verdictsFor(temporal, run, problems);
    const reviews = verdicts.filter(({ type }) => type === 'review');
    const computed = verdicts.filter(({ type }) => type === 'verdict');
    const roots = [workflowId, ...computed.slice(0, MOST_LOOKED_AT).map((one) => one.workflowId)];
    return { reviews, computed, pending: await pendingOf(temporal, roots) };
  };
  // While an answer is waited for that may not come, what Temporal itself knows is read.
  const [progress, ladder, { reviews, computed, pending }] = await Promise.all([
    askProgress(temporal, workflowId, patienceMs),
    run === null ? null : askLadder(temporal, run, patienceMs),
    known(),
  ]);
  if (pending.more) problems.push(`only ${pending.workflows} of its workflows were looked at`);
  if (progress === null) problems.push(`the run itself did not answer in ${patienceMs / 1000} s`);
  if (reviews.length > MOST_LOOKED_AT)
    problems.push(`${reviews.length - MOST_LOOKED_AT} more reviews that it asked for are open`);
  const reasons = [
    ...personReasons(progress, base.status),
    ...(await Promise.all(reviews.slice(0, MOST_LOOKED_AT).map((one) => reviewReason(temporal, one)))),
    ...(await Promise.all(
      (await pendingReasons(temporal, pending, busy, now)).map((one) => withFailure(temporal, one)),
    )),
    ...verdictReasons(computed, reviews, ladder?.waiting ?? null),
  ];
  return {
    ...base,
    ...(progress && { run: progress.run, status: progress.status, stage: progress.phase }),
    step: progress?.step?.step ?? base.step,
    reasons: reasons.length === 0 ? [{ kind: 'nothing' }] : inOrder(reasons),
    problems,
  };
}

const ORDER: readonly Reason['kind'][] = [
  'question',
  'no-worker',
  'workflow-fails',
  'retry',
  'silent',
  'paused',
  'stopping',
  'review',
  'paused-activity',
  'works',
  'queued',
  'verdicts',
  'over',
  'nothing',
  'unknown',
];

const inOrder = (reasons: readonly Reason[]): Reason[] =>
  reasons.toSorted((a, b) => ORDER.indexOf(a.kind) - ORDER.indexOf(b.kind));

function personReasons(progress: Progress | null, listed: RunStatus): Reason[] {
  const status = progress?.status ?? listed;
  const question = progress?.question ?? null;
  if (question !== null || status === 'waiting') return [{ kind: 'question', question }];
  return status === 'paused' || status === 'stopping' ? [{ kind: status }] : [];
}

/** Workflows of verdicts that the run has asked for first. */
async function verdictsFor(temporal: Client, run: string, problems: string[]): Promise<Execution[]> {
  const query = `GradusRun = ${quotedInQuery(run)} AND ExecutionStatus = "Running" AND WorkflowType IN ("verdict", "review")`;
  try {
    return (await listExecutions(temporal, query)).executions;
  } catch (error) {
    problems.push(`which verdicts it waits for cannot be said: ${messageOf(error)}`);
    return [];
  }
}

async function reviewReason(temporal: Client, review: Execution): Promise<Reason> {
  const state = await askWorkflow<ReviewState>(temporal, review.workflowId, 'review');
  return {
    kind: 'review',
    id: review.workflowId,
    verifier: textAttribute(review, 'GradusVerifier') ?? state?.ask.request.verifier ?? null,
    given: state?.opinions.length ?? null,
    reviewers: state?.reviewers ?? null,
    deadline: state?.deadline ?? null,
  };
}

/** By verifier; what the ladder waits for besides, others have asked for before. */
function verdictReasons(
  computed: readonly Execution[],
  reviews: readonly Execution[],
  waiting: number | null,
): Reason[] {
  const counts = new Map<string | null, number>();
  for (const one of computed) {
    const verifier = textAttribute(one, 'GradusVerifier');
    counts.set(verifier, (counts.get(verifier) ?? 0) + 1);
  }
  const others = (waiting ?? 0) - computed.length - reviews.length;
  if (others > 0) counts.set(null, (counts.get(null) ?? 0) + others);
  return [...counts].map(([verifier, count]) => ({ kind: 'verdicts', verifier, count }));
}

async function pendingReasons(
  temporal: Client,
  pending: Pending,
  busy: BusyQueues,
  now: number,
): Promise<Reason[]> {
  const queues = new Set(pending.activities.flatMap(({ queue }) => queue ?? []));
  const [ofWorkflows, ...ofActivities] = await Promise.all([
    pollersOf(temporal, QUEUES.orchestrator, 'workflows'),
    ...[...queues].map(async (queue) => [queue, await pollersOf(temporal, queue, 'activities')] as const),
  ]);
  const pollers = { workflows: ofWorkflows, activities: new Map(ofActivities) };
  const reasons = reasonsOf(pending, pollers, now);
  const unserved = reasons.some((one) => one.kind === 'no-worker' && one.serves === 'activities');
  // A worker that is busy with another run asks for nothing, either.
  return unserved ? reasonsOf(pending, { ...pollers, busy: await busy() }, now) : reasons;
}

/** What follows from what is pending, and from who asks for work. */
export function reasonsOf(
  { activities, tasks }: Pick<Pending, 'activities' | 'tasks'>,
  pollers: {
    workflows: readonly Poller[];
    activities: ReadonlyMap<string, readonly Poller[]>;
    /** Queues for which something is being done, by other runs too. */
    busy?: ReadonlySet<string>;
  },
  now: number,
): Reason[] {
  const reasons: Reason[] = [...workflowReasons(tasks, pollers.workflows, now)];
  const unserved = new Set<string>();
  for (const [queue, asking] of pollers.activities) {
    const here = activities.filter((one) => one.queue === queue);
    const due = here.filter((one) => one.state === 'waits' && (one.due ?? 0) <= now);
    if (due.length === 0) continue;
    const since = Math.min(...due.map((one) => one.due ?? now));
    const inHand = pollers.busy?.has(queue) === true || here.some((one) => isInHand(one, now));
    const server = serverOf(asking, { waitingSince: since, inHand }, now);
    if (server === 'there' || server === 'busy') continue;
    unserved.add(queue);
    reasons.push({
      kind: 'no-worker',
      queue,
      serves: 'activities',
      what: [...new Set(due.map(({ activity }) => activity))],
      count: due.length,
      since,
      lastAsked: asking[0]?.at ?? null,
      sure: server === 'missing',
    });
  }
  const plights = new Map<string, PendingActivity[]>();
  for (const one of activities) {
    const plight = plightOf(one, now);
    if (plight === 'queued' && unserved.has(one.queue ?? '')) continue;
    const key = JSON.stringify([
      plight,
      one.activity,
      one.queue,
      plight === 'retry' && one.lastFailure?.message,
    ]);
    plights.set(key, [...(plights.get(key) ?? []), one]);
  }
  for (const alike of plights.values()) reasons.push(reasonOf(plightOf(alike[0]!, now), alike));
  return reasons;
}

/** Whoever is at it is there. */
const isInHand = ({ state, heartbeatAt }: PendingActivity, now: number): boolean =>
  state === 'runs' && now - (heartbeatAt ?? 0) < 10_000;

type Plight = 'retry' | 'silent' | 'queued' | 'works' | 'paused-activity';

function plightOf(one: PendingActivity, now: number): Plight {
  if (one.state === 'paused') return 'paused-activity';
  if (one.attempt > 1 && one.lastFailure !== null) return 'retry';
  if (one.state === 'waits') return 'queued';
  const sign = Math.max(one.heartbeatAt ?? 0, one.startedAt ?? 0);
  const overdue = one.heartbeatSeconds > 0 && now - sign > OVERDUE * one.heartbeatSeconds * 1000;
  return overdue ? 'silent' : 'works';
}

function reasonOf(plight: Plight, alike: readonly PendingActivity[]): Reason {
  const { activity, queue, workflowId: workflow, heartbeatSeconds } = alike[0]!;
  if (plight === 'paused-activity') return { kind: plight, activity, workflow };
  const several: Several = {
    activity,
    queue,
    workflow,
    count: alike.length,
    attempt: Math.max(...alike.map(({ attempt }) => attempt)),
    since: earliest(alike.map(({ startedAt, due, state }) => (state === 'runs' ? startedAt : due))),
  };
  const signs = earliest(alike.map(({ heartbeatAt }) => heartbeatAt));
  switch (plight) {
    case 'retry': {
      const nextAt = alike.some(({ state }) => state === 'runs')
        ? null
        : earliest(alike.map(({ due }) => due));
      return { kind: plight, ...several, failure: alike[0]!.lastFailure!.message, nextAt };
    }
    case 'silent':
      return { kind: plight, ...several, heartbeatAt: signs, heartbeatSeconds };
    case 'queued':
      return { kind: plight, ...several };
    default: {
      const said = alike.flatMap((one) => one.said ?? []);
      const workers = [...new Set(alike.flatMap(({ worker }) => worker ?? []))];
      return { kind: 'works', ...several, heartbeatAt: signs, said, workers };
    }
  }
}

const earliest = (moments: readonly (number | null)[]): number | null => {
  const known = moments.filter((moment) => moment !== null);
  return known.length === 0 ? null : Math.min(...known);
};

function workflowReasons(tasks: readonly PendingTask[], asking: readonly Poller[], now: number): Reason[] {
  const waiting = tasks.filter(({ queue }) => queue === QUEUES.orchestrator);
  const since = earliest(waiting.filter((one) => one.startedAt === null).map((one) => one.since));
  // What is being executed comes back within ten seconds, or is lost.
  const inHand = waiting.some(({ startedAt }) => startedAt !== null && now - startedAt < 10_000);
  const server = serverOf(asking, { waitingSince: since, inHand }, now);
  const reasons: Reason[] = waiting
    .filter(({ attempt }) => attempt > 2)
    .map(({ workflowId, attempt, since: begun }) => ({
      kind: 'workflow-fails',
      workflow: workflowId,
      attempt,
      failure: null,
      since: begun,
    }));
  if (server === 'there' || server === 'busy') return reasons;
  const what = waiting.map(({ workflowId }) => workflowId);
  const missing: Reason = {
    kind: 'no-worker',
    queue: QUEUES.orchestrator,
    serves: 'workflows',
    what: what.slice(0, MOST_LOOKED_AT),
    count: what.length,
    since,
    lastAsked: asking[0]?.at ?? null,
    sure: server === 'missing',
  };
  return [missing, ...reasons];
}

/** With what the history has of why a workflow cannot be executed: its first attempt's failure. */
async function withFailure(temporal: Client, reason: Reason): Promise<Reason> {
  if (reason.kind !== 'workflow-fails') return reason;
  const { history } = await temporal.workflowService.getWorkflowExecutionHistoryReverse({
    namespace: temporal.options.namespace,
    execution: { workflowId: reason.workflow },
    maximumPageSize: 10,
  });
  const failed = history?.events?.find((event) => event.workflowTaskFailedEventAttributes);
  const failure = failed?.workflowTaskFailedEventAttributes?.failure;
  return failure ? { ...reason, failure: faultOf(failure).message } : reason;
}

/** `temporal.api.enums.v1.HistoryEventFilterType`. */
const CLOSE_EVENT = 2;
/** Characters: a refused spec is a line for each of its problems. */
const LONGEST_END = 10_000;

/** Why a workflow ended before its end, in `most` characters; null where it did not, or nothing is said. */
export async function endOfRun(
  temporal: Client,
  { workflowId, runId, status }: Execution,
  most = LONGEST_END,
): Promise<string | null> {
  if (status !== 'failed' && status !== 'terminated') return null;
  const { history } = await temporal.workflowService.getWorkflowExecutionHistory({
    namespace: temporal.options.namespace,
    execution: { workflowId, runId },
    historyEventFilterType: CLOSE_EVENT,
  });
  const last = history?.events?.at(-1);
  const failure = last?.workflowExecutionFailedEventAttributes?.failure;
  if (failure) return faultOf(failure, most).message;
  const reason = last?.workflowExecutionTerminatedEventAttributes?.reason;
  return reason === undefined || reason === null || reason === '' ? null : reason;
}
