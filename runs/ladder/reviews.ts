import type { Client } from '@temporalio/client';
import { z } from 'zod';
import { ids } from '../../core/names.ts';
import type { ReviewState } from '../../workflows/ladder/review-state.ts';
import { inParallel } from '../../store/in-parallel.ts';
import { askWorkflow } from '../temporal/ask.ts';
import { listExecutions, quotedInQuery, textAttribute } from '../temporal/executions.ts';
import { ANSWERS_WITHIN_MS } from '../temporal/from-temporal.ts';

/** A review that people have been asked for. */
export interface OpenReview {
  /** The workflow's. */
  id: string;
  /** Who asked first; null where that is not known. */
  run: string | null;
  /** Epoch milliseconds. */
  startedAt: number;
  /** What it says of itself; null where nobody answers just now. */
  state: ReviewState | null;
  /** All runs that wait for it are over: a verdict is kept for others, and nothing of these follows from it. */
  runOver: boolean;
}

export interface OpenReviews {
  /** Those with the nearest deadline first. */
  reviews: OpenReview[];
  /** There are more than were asked for. */
  more: boolean;
}

/** Open reviews. Throws what Temporal throws when it is away. */
export async function openReviews(
  temporal: Client,
  { limit = 200, patienceMs = 1500 }: { limit?: number; patienceMs?: number } = {},
): Promise<OpenReviews> {
  const [{ executions, more }, isGoingOn] = await Promise.all([
    listExecutions(temporal, OPEN, { limit, timeoutMs: ANSWERS_WITHIN_MS }),
    runsGoingOn(temporal),
  ]);
  const reviews = await inParallel(executions, async (execution): Promise<OpenReview> => {
    const { workflowId: id, startedAt } = execution;
    const state = readReviewState(await askWorkflow<unknown>(temporal, id, 'review', patienceMs));
    const run = state?.run ?? textAttribute(execution, 'GradusRun');
    const runOver = isRunOver(run, state?.waiting ?? [], isGoingOn);
    return { id, run, startedAt, state, runOver };
  });
  // The list is some moments behind: what says that it is closed is not open.
  const open = reviews.filter(({ state }) => (state?.verdict ?? null) === null);
  return { reviews: open.toSorted(byDeadline), more };
}

/** Open reviews that a run has asked for first; null where Temporal does not say. */
export async function countOpenReviews(temporal: Client, run: string): Promise<number | null> {
  try {
    const { executions } = await listExecutions(temporal, `${OPEN} AND GradusRun = ${quotedInQuery(run)}`, {
      timeoutMs: ANSWERS_WITHIN_MS,
    });
    return executions.length;
  } catch {
    // That it is away is told by everything else on the page.
    return null;
  }
}

/** Whether nobody waits for a review any more whose course its verdict could change. Throws what Temporal throws. */
export async function isForOthers(
  temporal: Client,
  { run, waiting = [] }: Pick<ReviewState, 'run' | 'waiting'>,
): Promise<boolean> {
  return isRunOver(run, waiting, await runsGoingOn(temporal));
}

/** Where there are more runs than are listed, any may be going on. */
async function runsGoingOn(temporal: Client): Promise<(run: string) => boolean> {
  const { executions, more } = await listExecutions(temporal, GOING_ON, { timeoutMs: ANSWERS_WITHIN_MS });
  const names = new Set(executions.map((one) => textAttribute(one, 'GradusRun')));
  return (run) => more || names.has(run);
}

const OPEN = `WorkflowType = 'review' AND ExecutionStatus = 'Running'`;
const GOING_ON = `WorkflowType = 'curriculum' AND ExecutionStatus = 'Running'`;

/**
 * Whether nobody waits any more whose course the verdict could change: neither the run that asked first, nor the run of any
 * ladder that waits, nor a sweep or another workflow. Of a review without a run it is not known.
 */
export function isRunOver(
  run: string | null,
  waiting: readonly string[],
  isGoingOn: (run: string) => boolean,
): boolean {
  if (run === null) return false;
  const ladders = waiting.map((id) => (id.endsWith(LADDER) ? id.slice(0, -LADDER.length) : null));
  return [run, ...ladders].every((one) => one !== null && !isGoingOn(one));
}

const LADDER = ids.ladder('');

const byDeadline = (a: OpenReview, b: OpenReview): number =>
  deadlineOf(a) - deadlineOf(b) || a.startedAt - b.startedAt || (a.id < b.id ? -1 : 1);

const deadlineOf = ({ state }: OpenReview): number =>
  state === null ? Infinity : Date.parse(state.deadline);

const verdictFields = z.looseObject({ kind: z.enum(['scored', 'measured', 'abstained']) });
const stateShape = z.looseObject({
  run: z.string().nullable(),
  waiting: z.array(z.string()).optional(),
  ask: z.looseObject({
    request: z.looseObject({
      verifier: z.string(),
      version: z.string(),
      digest: z.string(),
      subject: z.json(),
    }),
    environment: z.string(),
    cheaper: z
      .array(
        z.looseObject({
          verifier: z.string(),
          version: z.string().nullable(),
          score: z.number().nullable(),
          uncertainty: z.number().optional(),
          said: z.string().optional(),
        }),
      )
      .optional(),
  }),
  reviewers: z.number(),
  deadline: z.string().refine((text) => !Number.isNaN(Date.parse(text))),
  opinions: z.array(
    z.looseObject({ reviewer: z.string(), score: z.number(), comment: z.string().optional() }),
  ),
  withdrawn: z.array(z.looseObject({ reviewer: z.string(), reason: z.string().optional() })),
  verdict: verdictFields.nullable(),
});

/** What a workflow says that calls itself a review; null for what is none: anybody may have started it. */
export function readReviewState(answer: unknown): ReviewState | null {
  const read = stateShape.safeParse(answer);
  return read.success ? (read.data as unknown as ReviewState) : null;
}
