import { z } from 'zod';
import { amount, positive } from '../fields.ts';
import { overSamples } from './advantage.ts';
import type { SampleAdvantages } from './advantage.ts';
import type { Method } from './method.ts';
import type { KtoObjective, OfSamples } from './objective.ts';
import { ofSamples, passes, planOf } from './surrogate.ts';

/**
 * KTO, Kahneman–Tversky optimization (Ethayarajh et al. 2024, arXiv 2402.01306, eqs. 7 and 8): single samples, desirable
 * where they succeed and undesirable where they fail, without pairs.
 *
 *   z0 = max(0, mean of log π/π_ref of completions put after the prompt of another task), which the step's other tasks give;
 *   loss: λ_D (1 − σ(β (log π/π_ref − z0))) of the desirable, λ_U (1 − σ(β (z0 − log π/π_ref))) of the others.
 *
 * Failures are made less likely without a bound. At the learning rate of the other methods a small policy forgot everything
 * (docs/log.md), so it has a third of it by default.
 */
const schema = z.strictObject({
  kind: z
    .literal('kto')
    .describe('Learns from samples that are good or bad, without pairs (Ethayarajh et al. 2024).'),
  beta: positive(100, 'the reference would hold it')
    .default(0.1)
    .describe('How strongly the reference holds.'),
  desirableWeight: amount(100, 'weigh the others less')
    .default(1)
    .describe('Weight of samples that succeed.'),
  undesirableWeight: amount(100, 'weigh the others less').default(1).describe('Weight of samples that fail.'),
  ...passes,
});

/** What it says of the loss, whoever made the examples. */
export const ktoLossSchema = schema.pick({
  kind: true,
  beta: true,
  desirableWeight: true,
  undesirableWeight: true,
});
type LossSpec = z.output<typeof ktoLossSchema>;

export const ktoObjective = (
  { beta, desirableWeight, undesirableWeight }: LossSpec,
  { temperature, topK }: OfSamples,
): KtoObjective => ({ kind: 'kto', temperature, topK, beta, desirableWeight, undesirableWeight });

export const refuseKto = ({
  desirableWeight,
  undesirableWeight,
}: LossSpec): { field: string; message: string }[] =>
  desirableWeight === 0 && undesirableWeight === 0
    ? [
        {
          field: 'desirableWeight',
          message: 'and undesirableWeight are both 0, so nothing would be trained: raise one of them',
        },
      ]
    : [];

export const kto: Method<typeof schema> = {
  schema,
  perGroup: false,
  readsTurns: false,
  ignoresScale: () => true,
  whole: true,
  offPolicy: true,
  learningRate: 1e-4,
  plan: (spec, sampling) => planOf(spec, ktoObjective(spec, ofSamples(sampling)), { contrast: 'step' }),
  advantages: (groups) => {
    const judged = groups.flatMap(({ samples }, group) => {
      const labels = samples.map(({ reward, success }) =>
        reward === null || success === null ? null : success ? 1 : -1,
      );
      return overSamples(group, samples, labels).map((one): SampleAdvantages => ({
        ...one,
        label: labels[one.sample]!,
      }));
    });
    if (groups.length < 2) return judged;
    const mismatched = judged.map(({ group, sample, advantages }): SampleAdvantages => ({
      group,
      sample,
      advantages: advantages.map(() => 0),
      label: 0,
      promptOf: (group + 1) % groups.length,
    }));
    return [...judged, ...mismatched];
  },
  refuse: refuseKto,
};
