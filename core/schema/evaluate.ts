import { z } from 'zod';
import { count, givenName, name } from '../fields.ts';
import { agentSchema } from './agent.ts';
import { beamsSchema } from './beams.ts';
import type { BeamsSpec } from './beams.ts';
import type { CurriculumSpec } from './curriculum-spec.ts';
import { dialectSchema } from './dialect.ts';
import { evaluationSchema } from './evaluation.ts';
import { evaluatedPolicySchema } from './policy.ts';
import { rewardSchema } from './reward.ts';
import { MOST_TOP_K } from '../names.ts';
import { samplingSchema } from './sampling.ts';
import { verificationSchema } from './verification.ts';

const { count: tasks, samples, confidence } = evaluationSchema.shape;
const { rungs, evaluateBy } = verificationSchema.shape;
const { topK, ...limits } = samplingSchema.unwrap().shape;

/** What a person asks of the workflow `evaluate`. Strict, like a spec. */
export const evaluateSchema = z
  .strictObject({
    run: name
      .optional()
      .describe("Name of the evaluation in the store; the workflow's id where it is absent."),
    checkpoint: z
      .string()
      .min(1)
      .max(1000, 'has at most 1000 characters')
      .optional()
      .describe('RUN, its last checkpoint; RUN@STEP; or the key of a checkpoint, runs/RUN/checkpoints/….'),
    policy: evaluatedPolicySchema,
    agent: agentSchema
      .unwrap()
      .nullable()
      .optional()
      .describe('As in a spec; null: none. Absent: the agent of the run that the checkpoint is from.'),
    dialect: dialectSchema.optional(),
    tasks: z
      .array(
        z.strictObject({
          environment: givenName.describe('Name of an environment that the workers know.'),
          levels: z
            .array(z.int())
            .nonempty()
            .max(256, 'has at most 256 levels')
            .optional()
            .describe('Absent: all of its levels.'),
        }),
      )
      .nonempty()
      .max(64, 'has at most 64 entries')
      .describe('Environments and their levels.'),
    count: tasks,
    samples,
    confidence,
    split: z.enum(['test', 'heldout']).default('test').describe('Which tasks: no split that is trained on.'),
    seed: z.int().min(0).default(0).describe('Every draw follows from it, and from the place of its task.'),
    sampling: z
      .strictObject({
        ...limits,
        // Nothing is trained, so 1 is allowed: the likeliest token alone.
        topK: count(MOST_TOP_K, topK.description!, 0).default(0),
      })
      .prefault({})
      .describe('What is absent is as in the run that the checkpoint is from.'),
    beams: beamsSchema.optional(),
    reward: rewardSchema
      .omit({ rules: true, normalization: true })
      .optional()
      .describe('Absent: the outcome of the run that the checkpoint is from.'),
    verification: z
      .strictObject({
        rungs: rungs
          .optional()
          .describe(
            'The tiers, the cheapest first. Absent: those of the run that the checkpoint is from. The budget of the tier that judges is for the whole evaluation: one that it could pass is refused.',
          ),
        evaluateBy: evaluateBy.describe(
          'The tier that judges every answer which the lowest one passes. Absent: as in the run, or the highest tier that steps wait for and that has no budget.',
        ),
      })
      .optional()
      .describe(
        'As in a spec: one of these tiers judges, and what it cannot judge is no success. Absent: fast verifiers alone judge.',
      ),
    dryRun: z
      .boolean()
      .default(false)
      .describe('Only check the input, and return what would be evaluated; checkpoint may be absent.'),
  })
  .describe('An evaluation of a checkpoint without a training run.');

/** What the verdicts of an evaluation may cost at most: each is paid as its verifier declares. */
export interface ExpectedVerdicts {
  verifier: string;
  count: number;
  seconds: number;
  usd: number;
}

export type WrittenEvaluate = z.output<typeof evaluateSchema>;

/** An evaluation, parsed, defaults filled in: a curriculum that has no stages, and only its report. */
export interface EvaluateSpec extends CurriculumSpec {
  split: WrittenEvaluate['split'];
  /** Absent: turns are sampled. */
  beams?: BeamsSpec;
}
