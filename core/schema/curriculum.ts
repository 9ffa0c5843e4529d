import { z } from 'zod';
import { name } from '../fields.ts';
import { agentSchema } from './agent.ts';
import { evaluationSchema } from './evaluation.ts';
import { learnerSchema } from './learner.ts';
import { modelSchema } from './model.ts';
import { policySchema } from './policy.ts';
import { retentionSchema } from './retention.ts';
import { rewardSchema } from './reward.ts';
import { samplingSchema } from './sampling.ts';
import { stagesSchema } from './stages/stages.ts';
import { verificationSchema } from './verification.ts';

/**
 * What a person writes. Strict everywhere: a field that would do nothing is refused. Descriptions become the
 * documentation in `examples/curriculum.schema.json`.
 */
export const curriculumSchema = z
  .strictObject({
    $schema: z.string().optional().describe('Path of the JSON schema, for editors. Gradus does not read it.'),
    run: name.optional().describe("Name of the run in the store; the workflow's id where it is absent."),
    seed: z.int().min(0).default(0).describe('Every random choice of the run follows from it.'),
    model: modelSchema,
    policy: policySchema,
    agent: agentSchema,
    learner: learnerSchema,
    sampling: samplingSchema,
    reward: rewardSchema,
    verification: verificationSchema
      .optional()
      .describe('The ladder of verifiers, the cheapest first. Absent: only fast verifiers judge.'),
    stages: stagesSchema,
    evaluation: evaluationSchema,
    retention: retentionSchema,
  })
  .describe('A Gradus curriculum.');

export type WrittenSpec = z.output<typeof curriculumSchema>;
