import { z } from 'zod';
import {
  blobRef,
  count,
  measured,
  measuredWith,
  moment,
  question,
  record,
  runStatus,
  spent,
} from './parts.ts';

export const runOutput = z.strictObject({
  run: z.string().nullable().describe('its name in the store'),
  workflowId: z.string().nullable(),
  status: runStatus,
  from: z.enum(['progress', 'visibility', 'store']),
  stage: z.string().nullable(),
  step: count.nullable().describe('of the run, from 1'),
  stageStep: count.nullable(),
  maxSteps: count.nullable(),
  heldOut: measuredWith.nullable(),
  question: question.nullable(),
  concerns: z.array(record('an alarm that stands, or a goal that was missed')),
  retrying: count.nullable().describe('kinds of activities at their third attempt or a later one'),
  startedAt: moment.nullable(),
  endedAt: moment.nullable(),
  spend: spent.nullable(),
});

export const checkpointOutput = z.strictObject({
  manifest: blobRef,
  weights: z.string().describe('SHA-256'),
  step: count,
  stage: z.string(),
});

export const evaluation = z.strictObject({
  ...measured.shape,
  how: record('how tasks were solved').optional(),
  outcomes: z.record(z.string(), count),
  toolFailures: count,
  arms: z
    .record(
      z.string(),
      z.strictObject({
        ...measured.shape,
        arm: z.strictObject({ environment: z.string(), level: z.int() }),
        toolFailures: count.optional(),
      }),
    )
    .describe('by environment and level'),
});

export const trainOutput = z.strictObject({
  run: z.string().nullable(),
  end: z.string(),
  confidence: z.number(),
  before: evaluation.nullable().describe('before the first RL stage'),
  after: evaluation.nullable(),
  steps: count,
  alarms: z.array(record('an alarm, and what was done about it')),
  standing: z.array(record('an alarm that stands at the end')),
  equalGroups: record('the share of groups with equal rewards in the last step; null where it is not known'),
  tokens: z
    .record(z.string(), z.strictObject({ sampled: count, taught: count }))
    .describe(
      'by stage: tokens sampled for training, and trained tokens (those in samples whose advantage was not zero)',
    ),
  seconds: z.record(z.string(), z.number()).describe('of the whole run, by part'),
  sinceStart: z.number().describe('seconds since this start'),
  learner: z.string().nullable(),
  checkpoint: z.strictObject({ key: z.string(), sha256: z.string() }),
});

export const metricsOutput = z.strictObject({
  stage: z.string(),
  stageStep: count,
  maxSteps: count,
  step: count,
  environment: z.string(),
  checkpoint: z.strictObject({ manifest: blobRef, weights: z.string(), step: count }),
  backend: z.string().nullable(),
  rollout: record('what was rolled out; null where nothing was'),
  batch: record('what the learner was given; null where nothing was'),
  learner: record('what the learner measured; null where there was no update'),
  heldOut: record('held-out success; null where it was not measured'),
  rewardModel: record('how well the models of a reward stage judge held-out episodes').optional(),
  criteria: z.array(record('how far a criterion of a supervised stage is')).optional(),
  synthesis: record('what a supervised stage has made of verified trajectories').optional(),
  estimates: record('success by environment and level'),
  change: count.optional(),
  adjusted: record("how the step's settings differed from the spec"),
  movingMeans: z
    .record(z.string(), z.number())
    .optional()
    .describe(
      'rewards of earlier steps, by environment and level, that those of the step were compared with',
    ),
  league: z
    .record(z.string(), z.strictObject({ score: z.number(), steps: z.number() }))
    .optional()
    .describe(
      'by the stage of an opponent: the sum of scores against it and the steps that met it, both decayed',
    ),
  alarms: z.array(record('an alarm')),
  standing: z.array(z.string()).optional(),
  decision: record('what was decided after the step'),
  circumstances: record('clocks and incidents'),
  answer: record("a person's answer"),
  figures: z.record(z.string(), z.number()).describe('every figure of the step, by its name in charts'),
});

export const ledgerOutput = record(
  'an entry of the ledger: what a verifier was asked in a step, and what it cost',
);

export const reviewOutput = z.strictObject({
  id: z.string(),
  run: z.string().nullable(),
  startedAt: moment,
  state: record('the question and the opinions so far; null where the workflow does not answer'),
  runOver: z.boolean().describe('whether all runs that wait for it are over'),
});
