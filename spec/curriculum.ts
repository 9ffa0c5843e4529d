import { z } from 'zod';
import { name } from '../core/fields.ts';
import { evaluationSchema } from './sections/evaluation.ts';
import { learnerSchema } from './sections/learner.ts';
import { modelSchema } from './sections/model.ts';
import { retentionSchema } from './sections/retention.ts';
import { rewardSchema } from './sections/reward.ts';
import { samplingSchema } from './sections/sampling.ts';
import { stagesSchema } from './sections/stages/stages.ts';
import { verificationSchema } from './sections/verification.ts';

/**
 * What a person writes. Strict everywhere: a field that would do nothing is refused. Descriptions become the
 * documentation in `examples/curriculum.schema.json`.
 */
export const curriculumSchema = z
  .strictObject({
    $schema: z.string().optional(),
    run: name.optional().describe("Name of the run in the store; the workflow's id where it is absent."),
    seed: z.int().min(0).default(0).describe('Every random choice of the run follows from it.'),
    model: modelSchema,
    learner: learnerSchema,
    sampling: samplingSchema,
    reward: rewardSchema,
    verification: verificationSchema.optional(),
    stages: stagesSchema,
    evaluation: evaluationSchema,
    retention: retentionSchema,
  })
  .describe('A Gradus curriculum.');

export type WrittenSpec = z.output<typeof curriculumSchema>;
