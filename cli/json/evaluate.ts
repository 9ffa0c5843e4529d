import { z } from 'zod';
import { blobRef, count, record } from './parts.ts';
import { evaluation } from './runs.ts';

const mean = z.strictObject({
  mean: z.number().min(0).max(1),
  n: count.describe('tasks'),
  low: z.number(),
  high: z.number(),
});

const within = z
  .array(z.strictObject({ most: count, ...mean.shape }))
  .describe('success with at most so many');

const measured = z.strictObject({
  ...evaluation.shape,
  run: z.string().describe('its name in the store'),
  checkpoint: z.strictObject({ manifest: blobRef, weights: z.string(), step: count }),
  split: z.enum(['test', 'heldout']),
  seed: count,
  samples: count.describe('of each task'),
  sampling: record('how it was sampled, as in a spec'),
  beams: z
    .strictObject({
      width: count.describe('beams of a turn, in all groups together'),
      groups: count,
      diversity: z.number().describe('nats that a token costs for each beam of an earlier group that has it'),
    })
    .nullable()
    .describe('how turns were searched for; null: they were sampled'),
  reward: record('what success is, as in a spec'),
  evaluateBy: z.string().nullable().describe('the tier that judged; null: fast verifiers alone'),
  verdicts: z
    .strictObject({
      asked: count,
      computed: count.describe('for this evaluation; the others were known'),
      seconds: z.number().describe('that they took'),
      usd: z.number().describe('US$ that they cost'),
    })
    .nullable()
    .describe('of that tier; null where none judged'),
  policy: record('servers that sampled, as in a spec; what they hold, in held')
    .nullable()
    .describe('null: the decoder of rollout workers'),
  agent: record('what made the episodes, as in a spec').nullable().describe('null: no agent'),
  meanReward: z.number(),
  passAtK: z
    .array(z.strictObject({ k: count, ...mean.shape }))
    .describe('pass@k for each k up to samples, over the tasks that have k judged samples'),
  withinTurns: within,
  withinTokens: within,
});

const difference = z
  .strictObject({
    mean: z.number().describe('success of the first less that of the second'),
    n: count.describe('tasks of which both could be judged'),
    low: z.number(),
    high: z.number(),
    first: count.describe('tasks that the first solved more often'),
    second: count,
    equal: count,
  })
  .nullable();

export const evaluateOutput = z.strictObject({
  confidence: z.number(),
  evaluation: measured,
  against: measured.nullable(),
  difference: z
    .strictObject({ all: difference, arms: z.record(z.string(), difference) })
    .nullable()
    .describe('paired, task by task; null without --against and --against-sampling'),
});
