import { z } from 'zod';

export const learnerSchema = z
  .strictObject({
    precision: z
      .enum(['float32', 'bfloat16'])
      .default('float32')
      .describe('Of the operands of matrix products; everything else is float32.'),
    gradientCheckpointing: z
      .boolean()
      .default(false)
      .describe("Compute each layer's activations again in the backward pass: less memory, more time."),
    microBatchTokens: z
      .int()
      .min(0)
      .max(2 ** 24, `must be at most ${2 ** 24}: 0 computes as many as are fast`)
      .default(0)
      .describe(
        'Positions of a micro-batch, padding included; the gradients of micro-batches add up. 0: a fast size.',
      ),
  })
  .prefault({})
  .describe('How the learner computes.');

/** What learning costs in time and memory, and in rounding. */
export type LearnerSpec = z.output<typeof learnerSchema>;
