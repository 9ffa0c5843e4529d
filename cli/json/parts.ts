import { z } from 'zod';

// What the output of several commands has in common.

export const count = z.int().min(0);
export const moment = z.number().describe('epoch milliseconds');
export const strings = z.array(z.string());

/** What follows Gradus's own records, which may gain fields with each version. */
export const record = (of: string) =>
  z.unknown().describe(`${of}; its fields may change from version to version`);

export const blobRef = z.strictObject({ key: z.string(), sha256: z.string(), bytes: count });

export const taskRef = z.strictObject({
  environment: z.string(),
  split: z.enum(['train', 'heldout', 'test']),
  level: z.int(),
  index: count,
});

export const place = z.strictObject({
  run: z.string(),
  stage: z.string().describe('a stage, or an evaluation by its name'),
  step: count,
  group: count,
  episode: count.describe("index among the group's episodes"),
});

const measuredFields = {
  success: z.number().min(0).max(1),
  successes: z.number().min(0),
  trials: z.number().min(0),
  low: z.number(),
  high: z.number(),
};
export const measured = z.strictObject(measuredFields);
export const measuredWith = z.strictObject({ ...measuredFields, confidence: z.number() });

export const question = z.strictObject({
  id: z.string(),
  asker: z.string().describe('the workflow that waits for the answer'),
  reason: z.string(),
  answers: z.array(z.strictObject({ answer: z.string(), effect: z.string() })),
});

export const runStatus = z
  .string()
  .describe(
    'such as running, waiting, paused, completed, failed, terminated, timed-out, forgotten, unknown, imported, evaluation',
  );

export const spent = z.strictObject({
  seconds: z.number(),
  usd: z.number(),
  openSeconds: z.number().describe('how long answered reviews were open in total'),
});

export const fault = z.strictObject({
  kind: z.enum(['silent', 'too-long', 'nobody-came', 'failed', 'cancelled', 'unknown']),
  message: z.string(),
});

/** What an activity said with its last heartbeat. */
export const said = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('progress'), done: count, total: count, tokens: count }),
  z.strictObject({
    kind: z.literal('call'),
    failed: count,
    reason: z.string().nullable(),
    said: z.string().nullable(),
  }),
  z.strictObject({ kind: z.literal('store-away'), seconds: z.number(), reason: z.string() }),
  z.strictObject({ kind: z.literal('other'), text: z.string() }),
]);
