import { z } from 'zod';
import { amount, count, decay, positive } from '../fields.ts';

const LEAST_NORM = 1e-9;

const rate = positive(1, 'Adam moves each weight by about that much');

const others = {
  warmupUpdates: count(1e6, 'the rate would never be reached', 0)
    .default(10)
    .describe('Updates over which the rate rises linearly.'),
  beta1: decay.default(0.9).describe('Decay of the mean of gradients.'),
  beta2: decay.default(0.999).describe('Decay of the mean of squared gradients.'),
  epsilon: z
    .number()
    .min(1e-20)
    .max(1)
    .default(1e-8)
    .describe('Added to the root of the mean square, so that nothing is divided by 0.'),
  maxGradientNorm: amount(1e6, '0 leaves the gradient alone')
    .refine((norm) => norm === 0 || norm >= LEAST_NORM, {
      error: `must be at least ${LEAST_NORM}, for nothing is left of a gradient in float32: 0 leaves it alone`,
    })
    .default(1)
    .describe('Clip of the global L2 norm; 0 leaves it alone.'),
};

/** Who reads the spec gives the learning rate where it is absent; `usual` says which. */
const optimizerSchema = (usual: string) =>
  z
    .strictObject({ learningRate: rate.optional().describe(usual), ...others })
    .prefault({})
    .describe('Adam (Kingma & Ba 2015).');

/** The default of its learning rate is that of the stage's method. */
export const methodsOptimizerSchema = optimizerSchema('Default 0.0003, and 0.0001 for kto.');

export const supervisedOptimizerSchema = optimizerSchema(
  'After the warm-up. Default 0.001; with an algorithm 0.0003 for dpo, and 0.0001 for kto.',
);

export interface OptimizerSpec extends Omit<z.output<typeof methodsOptimizerSchema>, 'learningRate'> {
  learningRate: number;
}
