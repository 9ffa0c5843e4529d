import { z } from 'zod';
import { count, fault, moment, question, runStatus, said, strings } from './parts.ts';

const activity = z.strictObject({
  run: z.string(),
  workflowId: z.string(),
  runId: z.string(),
  workflowType: z.string(),
  name: z.string(),
  queue: z.string().nullable(),
  state: z.enum(['running', 'waiting', 'paused']),
  attempt: count,
  since: moment.nullable(),
  beat: moment.nullable().describe('its last sign of life, epoch milliseconds'),
  said: said.nullable(),
  worker: z.string().nullable(),
  lastFailure: fault.nullable(),
});

export const operationsOutput = z.strictObject({
  asOf: moment,
  activities: z.array(activity),
  workflows: z.strictObject({ open: count, asked: count }),
  queues: z.array(
    z.strictObject({
      name: z.string(),
      kind: z.enum(['workflows', 'activities']),
      pollers: z.array(z.strictObject({ identity: z.string(), lastSeen: moment.nullable() })),
      backlog: z.strictObject({ tasks: count, seconds: z.number() }).nullable(),
    }),
  ),
});

const usage = z.strictObject({ prefix: z.string(), objects: count, bytes: count });

export const bytesOutput = z.strictObject({
  asOf: moment,
  all: usage,
  parts: z.array(usage),
  left: count.describe('smaller prefixes that are not listed'),
});

const several = {
  activity: z.string(),
  queue: z.string().nullable(),
  workflow: z.string(),
  count,
  attempt: count,
  since: moment.nullable(),
};

const reason = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('question'), question: question.nullable() }),
  z.strictObject({
    kind: z.literal('review'),
    id: z.string(),
    verifier: z.string().nullable(),
    given: count.nullable(),
    reviewers: count.nullable(),
    deadline: z.string().nullable().describe('ISO 8601'),
  }),
  z.strictObject({
    kind: z.literal('no-worker'),
    queue: z.string(),
    serves: z.enum(['workflows', 'activities']),
    what: strings,
    count,
    since: moment.nullable(),
    lastAsked: moment.nullable(),
    sure: z.boolean(),
  }),
  z.strictObject({
    kind: z.literal('workflow-fails'),
    workflow: z.string(),
    attempt: count,
    failure: z.string().nullable(),
    since: moment,
  }),
  z.strictObject({ kind: z.literal('retry'), failure: z.string(), nextAt: moment.nullable(), ...several }),
  z.strictObject({
    kind: z.literal('silent'),
    heartbeatAt: moment.nullable(),
    heartbeatSeconds: z.number(),
    ...several,
  }),
  z.strictObject({ kind: z.literal('paused') }),
  z.strictObject({ kind: z.literal('stopping') }),
  z.strictObject({ kind: z.literal('verdicts'), verifier: z.string().nullable(), count }),
  z.strictObject({ kind: z.literal('queued'), ...several }),
  z.strictObject({
    kind: z.literal('works'),
    heartbeatAt: moment.nullable(),
    said: z.array(said),
    workers: strings,
    ...several,
  }),
  z.strictObject({ kind: z.literal('paused-activity'), activity: z.string(), workflow: z.string() }),
  z.strictObject({
    kind: z.literal('over'),
    status: runStatus,
    failure: z.string().nullable(),
    at: moment.nullable(),
  }),
  z.strictObject({ kind: z.literal('nothing') }),
  z.strictObject({ kind: z.literal('unknown'), lastStepAt: moment.nullable() }),
]);

export const whyOutput = z.strictObject({
  workflowId: z.string().nullable(),
  run: z.string().nullable(),
  status: runStatus,
  stage: z.string().nullable(),
  step: count.nullable(),
  reasons: z.array(reason),
  problems: strings,
});
