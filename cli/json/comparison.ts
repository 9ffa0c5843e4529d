import { z } from 'zod';
import { count, record, strings, taskRef } from './parts.ts';

const difference = z.strictObject({ path: z.string(), values: z.array(z.string().nullable()) });
const stepOfRun = z.strictObject({ stage: z.string(), stageStep: count, step: count });

const commonTasks = z.strictObject({
  at: z.strictObject({ stage: z.string(), step: count }),
  tasks: z.array(
    z.strictObject({
      ref: taskRef,
      prompt: z.string(),
      of: z
        .array(
          z.array(
            z.strictObject({
              group: count,
              episode: count,
              success: z.boolean().nullable(),
              reward: z.number().nullable(),
            }),
          ),
        )
        .describe('the samples of each run'),
    }),
  ),
  success: z.array(z.strictObject({ successes: z.number(), trials: z.number(), samples: z.number() })),
  solved: z.strictObject({ both: count, first: count, second: count, neither: count }).nullable(),
  unreadable: strings,
});

const divergence = z.strictObject({
  runs: z.tuple([z.string(), z.string()]),
  spec: z.array(difference).nullable(),
  unreadable: strings,
  common: count,
  further: z.tuple([count, count]),
  facts: z.strictObject({ at: stepOfRun, differences: z.array(difference) }).nullable(),
  parting: z
    .strictObject({
      at: stepOfRun.nullable(),
      what: z.enum(['begin', 'course', 'tasks', 'demonstrations', 'sampled', 'batch', 'learner']),
      environments: z.tuple([z.string(), z.string()]).nullable(),
      evaluation: z.string().nullable(),
      group: z.string().nullable(),
      episode: record('the first episode that is not the same').nullable(),
      counts: z
        .strictObject({
          groups: count,
          other: count,
          otherTokens: count,
          otherLogprobs: count,
          otherVerdicts: count,
        })
        .nullable(),
      batch: z.string().nullable(),
    })
    .nullable(),
  looked: z.enum(['facts', 'episodes']),
  unlooked: count,
  clocks: z.boolean(),
});

export const compareOutput = z.strictObject({
  runs: z.array(z.strictObject({ run: z.string(), steps: count, tokens: count, seconds: z.number() })),
  spec: z.array(difference).nullable(),
  along: z.string(),
  figures: z
    .record(
      z.string(),
      z.array(
        z.strictObject({
          run: z.string(),
          points: z.array(z.tuple([z.number(), z.number().nullable()])),
        }),
      ),
    )
    .describe('curves by the name of their figure'),
  heldOut: z.array(
    z.strictObject({
      arm: z.strictObject({ environment: z.string(), level: z.int() }),
      of: z.array(z.strictObject({ step: count, successes: count, trials: count }).nullable()),
    }),
  ),
  unreadable: strings,
  tasks: commonTasks.nullable(),
  divergences: z.array(divergence),
});

const change = z.strictObject({ before: z.number().nullable(), after: z.number().nullable() });

export const reweighOutput = z.strictObject({
  run: z.string(),
  stage: z.string(),
  step: count,
  method: z.string(),
  fields: z.array(z.strictObject({ name: z.string(), value: z.string(), choices: strings.nullable() })),
  changes: z.array(z.strictObject({ field: z.string(), from: z.string(), to: z.string() })),
  dominates: z.boolean(),
  reproduced: z.union([
    z.strictObject({ exactly: z.literal(true) }),
    z.strictObject({ exactly: z.literal(false), why: z.string() }),
    z.strictObject({ exactly: z.literal('no-batch') }),
  ]),
  limits: strings,
  tasks: z.array(
    z.strictObject({
      ref: taskRef,
      hindsight: z.boolean(),
      deviation: change,
      teaches: z.strictObject({ before: z.boolean(), after: z.boolean() }),
      episodes: z.array(
        z.strictObject({
          group: z.string(),
          episode: count,
          sample: count,
          outcome: z.strictObject({ before: z.string(), after: z.string() }),
          contributions: z.array(z.strictObject({ name: z.string(), ...change.shape })),
          reward: change,
          advantage: change,
          tokens: count,
          flipped: count,
        }),
      ),
    }),
  ),
  totals: z.strictObject({
    tasks: count,
    episodes: count,
    otherRewards: count,
    flipped: count,
    begin: count,
    stop: count,
    teaching: z.strictObject({ before: count, after: count, begin: count, stop: count }),
  }),
});
