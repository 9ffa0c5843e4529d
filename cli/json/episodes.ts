import { z } from 'zod';
import { blobRef, count, fault, moment, place, record, strings, taskRef } from './parts.ts';

const weights = z.string().describe('SHA-256 of the weights that sampled');
const numbers = z.record(z.string(), z.number());

export const foundOutput = z.strictObject({
  place: z.string().describe('RUN/STAGE/STEP/GROUP/EPISODE'),
  stage: z.string(),
  step: count,
  group: count,
  episode: count,
  sample: count,
  environment: z.string(),
  split: z.string(),
  level: z.int(),
  index: count,
  retried: z.boolean(),
  hinted: z.boolean().describe('sampled with a hint behind the prompt'),
  weights,
  status: z.string(),
  outcome: z.string(),
  reason: z.string().nullable(),
  boundary: z.string().nullable(),
  success: z.boolean().nullable(),
  reward: z.number().nullable(),
  turns: count,
  calls: count,
  promptTokens: count,
  sampledTokens: count,
  observationTokens: count,
  inheritedTokens: count,
  logprobSum: z.number().describe('nats'),
  answer: z.string().nullable(),
  scores: z.record(z.string(), z.number().nullable()),
  contributions: numbers,
  tools: numbers,
  errors: z.record(z.string(), z.number().optional()),
  toolSeconds: z.number(),
});

export const textHitOutput = z.strictObject({
  place: z.string().describe('RUN/STAGE/STEP/GROUP/EPISODE'),
  where: z.enum(['prompt', 'turn', 'observation', 'answer']),
  turn: count.nullable(),
  before: z.string(),
  text: z.string(),
  after: z.string(),
  success: z.boolean().nullable(),
});

export const episodeOutput = z.strictObject({
  messages: z.array(record("a message in the form of OpenAI's API")),
  tools: z.array(record("a tool in the form of OpenAI's API")).optional(),
  place: z.string(),
  task: taskRef,
  sample: count,
  hinted: z.boolean().describe('sampled with a hint, which stands behind the prompt'),
  weights,
  outcome: z.string(),
  reason: z.string().nullable(),
  success: z.boolean().nullable(),
  reward: z.number().nullable(),
  scores: z.record(z.string(), z.number().nullable()),
  answer: z.string().nullable(),
  turns: strings.describe('exactly as they were sampled'),
});

const token = z.strictObject({ id: count, text: z.string(), logprob: z.number() });
const replayedToken = z.strictObject({
  id: count,
  text: z.string(),
  logprob: z.number().optional(),
  alternatives: z.array(token).optional(),
});
const at = { turn: count, position: count };

export const replayOutput = z.strictObject({
  place,
  checkpoint: z.strictObject({ key: z.string(), step: count, weights: z.string() }),
  stored: record('how the stored episode ended, and its outcome'),
  decoder: z.string(),
  replay: z
    .strictObject({
      equal: z.boolean(),
      sampled: count,
      differences: z.array(
        z.discriminatedUnion('kind', [
          z.strictObject({ kind: z.literal('token'), ...at, recorded: token, replayed: token }),
          z.strictObject({ kind: z.literal('logprob'), ...at, recorded: z.number(), replayed: z.number() }),
          z.strictObject({
            kind: z.literal('kept'),
            ...at,
            recorded: z.array(z.number()),
            replayed: z.array(z.number()),
          }),
          z.strictObject({ kind: z.literal('text'), ...at, what: z.string() }),
        ]),
      ),
      unread: z.boolean(),
      promptTokens: count,
      turns: z.array(z.strictObject({ start: count, end: count })),
      tokens: z.array(replayedToken),
    })
    .nullable(),
  fork: z
    .strictObject({
      at: count,
      promptTokens: count,
      tokens: z.array(replayedToken),
      turns: z.array(record('a turn of an episode')),
      status: record('how the fork ended'),
      outcome: record('its outcome; null where it was stopped'),
      stopped: z.string().nullable(),
    })
    .nullable(),
});

const episodeName = z.strictObject({ task: count, sample: count });

export const timelineOutput = z.strictObject({
  workflowId: z.string(),
  runId: z.string(),
  episode: episodeName.nullable(),
  episodes: count,
  from: moment,
  to: moment.nullable(),
  asOf: moment,
  activities: z.array(
    z.strictObject({
      id: z.string(),
      name: z.string(),
      queue: z.string(),
      scheduled: moment,
      started: moment.nullable(),
      ended: moment.nullable(),
      worker: z.string().nullable(),
      attempts: count,
      state: z.enum(['done', 'failed', 'timed-out', 'cancelled', 'running', 'waiting']),
      fault: fault.nullable(),
      lost: z
        .strictObject({
          attempts: count,
          fault,
          worker: z.string().nullable(),
          from: moment,
          to: moment,
          exact: z.boolean(),
          seconds: z.strictObject({ atLeast: z.number(), atMost: z.number() }),
          open: z.boolean(),
        })
        .nullable(),
      live: z
        .strictObject({
          beat: moment.nullable(),
          said: record('the last heartbeat').optional(),
          next: moment.nullable(),
        })
        .nullable(),
      workflowId: z.string(),
      runId: z.string(),
      episodes: z.array(episodeName).nullable(),
      tool: z.string().nullable(),
      call: z.string().nullable(),
      from: z.array(blobRef),
      kept: z.strictObject({ calls: count, callSeconds: z.number(), tokens: count.nullable() }).nullable(),
    }),
  ),
  lost: z.strictObject({ attempts: count, atLeast: z.number().nullable(), atMost: z.number() }),
  leftOut: strings,
});
