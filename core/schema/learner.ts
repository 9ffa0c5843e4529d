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
    sharePrompts: z
      .boolean()
      .optional()
      .describe(
        'Compute a prompt once for the samples of an update that begin with it, where that saves time. The results are those of `false` but for rounding, so the digests differ. Absent: false.',
      ),
    maxShardBytes: z
      .int()
      .min(1)
      .optional()
      .describe(
        'Weights of more bytes are stored in shards of at most so many, with their index, as `save_pretrained` of transformers does (`max_shard_size`). Absent: 5,000,000,000.',
      ),
    saveOptimizerEvery: z
      .int()
      .min(1)
      .max(1000, 'must be at most 1000: a learner that is killed makes all steps since then again')
      .optional()
      .describe(
        'Checkpoints of every so many steps of the run have the optimizer’s moments, which are two thirds of a checkpoint. The others have only weights, and a learner that was killed makes the steps since then again. Absent: all have moments.',
      ),
  })
  .prefault({})
  .describe('How the learner computes.');

/** What learning costs in time and memory, and in rounding. */
export type LearnerSpec = z.output<typeof learnerSchema>;
