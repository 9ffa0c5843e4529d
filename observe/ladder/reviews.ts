import type { Client } from '@temporalio/client';
import { z } from 'zod';
import type { ReviewState } from '../../workflows/review-state.ts';
import { inParallel } from '../../store/in-parallel.ts';
import { ask } from '../temporal/ask.ts';
import { listExecutions, textAttribute } from '../temporal/executions.ts';
import type { Execution } from '../temporal/executions.ts';

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
  const query = `WorkflowType = 'review' AND ExecutionStatus = 'Running'`;
  const { executions, more } = await listExecutions(temporal, query, { limit });
  const reviews = await inParallel(executions, (execution) => reviewOf(temporal, execution, patienceMs));
  return { reviews: reviews.toSorted(byDeadline), more };
}

async function reviewOf(temporal: Client, execution: Execution, patienceMs: number): Promise<OpenReview> {
  const { workflowId: id, startedAt } = execution;
  const state = readState(await ask<unknown>(temporal, id, 'review', patienceMs));
  return { id, run: state?.run ?? textAttribute(execution, 'GradusRun'), startedAt, state };
}

const byDeadline = (a: OpenReview, b: OpenReview): number =>
  deadlineOf(a) - deadlineOf(b) || a.startedAt - b.startedAt || (a.id < b.id ? -1 : 1);

const deadlineOf = ({ state }: OpenReview): number =>
  state === null ? Infinity : Date.parse(state.deadline);

const verdictFields = z.looseObject({ kind: z.enum(['scored', 'measured', 'abstained']) });
const stateShape = z.looseObject({
  run: z.string().nullable(),
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
export function readState(said: unknown): ReviewState | null {
  const read = stateShape.safeParse(said);
  return read.success ? (read.data as unknown as ReviewState) : null;
}
