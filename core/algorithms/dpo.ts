import { z } from 'zod';
import { count, positive } from '../fields.ts';
import type { SampleAdvantages } from './advantage.ts';
import type { Method } from './method.ts';
import type { DpoObjective, OfSamples } from './objective.ts';
import { pairsInwards } from './pairs.ts';
import { rewardedOf } from './sampled.ts';
import { ofSamples, passes, planOf } from './surrogate.ts';

/**
 * DPO, direct preference optimization (Rafailov et al. 2023, arXiv 2305.18290, eq. 7), over the policy's own trajectories:
 * with several steps it is iterative DPO (Xu et al. 2023; Guo et al. 2024). Pairs are made of the samples of one task, the
 * better one by reward chosen, those that differ most first; each sample is in one pair at most.
 *
 *   loss: −log σ(β (log π/π_ref of the chosen − log π/π_ref of the rejected)), sums over sampled tokens alone;
 *   `ipo` (Azar et al. 2023, arXiv 2310.12036): (difference − 1 / 2β)².
 */
const schema = z.strictObject({
  kind: z.literal('dpo').describe('Learns from pairs of a better and a worse sample (Rafailov et al. 2023).'),
  variant: z
    .enum(['sigmoid', 'ipo'])
    .default('sigmoid')
    .describe('sigmoid: DPO (Rafailov et al. 2023). ipo: a squared distance (Azar et al. 2023).'),
  beta: positive(100, 'the reference would hold it')
    .default(0.1)
    .describe('How strongly the reference holds.'),
  labelSmoothing: z
    .number()
    .min(0)
    .lt(0.5)
    .default(0)
    .describe('How often a preference is taken to be wrong (conservative DPO); sigmoid only.'),
  pairsPerTask: count(2048, 'a group has no more pairs')
    .default(2)
    .describe('The most pairs of a task that are trained on.'),
  ...passes,
});

/** What it says of the loss, whoever made the pairs. */
export const dpoLossSchema = schema.pick({ kind: true, variant: true, beta: true, labelSmoothing: true });
type LossSpec = z.output<typeof dpoLossSchema>;

export const dpoObjective = (
  { variant, beta, labelSmoothing }: LossSpec,
  { temperature, topK }: OfSamples,
): DpoObjective => ({ kind: 'dpo', temperature, topK, variant, beta, labelSmoothing });

/** Of `ipo`, which then wants 500 nats between two samples: longer ones than are trained here differ by less. */
const LEAST_IPO_BETA = 1e-3;

export function refuseDpo({ variant, labelSmoothing, beta }: LossSpec): { field: string; message: string }[] {
  if (variant !== 'ipo') return [];
  return [
    ...(labelSmoothing > 0
      ? [{ field: 'labelSmoothing', message: 'does nothing for ipo: leave it out, or choose sigmoid' }]
      : []),
    ...(beta < LEAST_IPO_BETA
      ? [
          {
            field: 'beta',
            message: `makes ipo drive the log-ratios of a pair 1 / (2 beta) = ${1 / (2 * beta)} nats apart, where nothing of the policy is left: give ${LEAST_IPO_BETA} or more`,
          },
        ]
      : []),
  ];
}

export const dpo: Method<typeof schema> = {
  schema,
  perGroup: false,
  readsTurns: false,
  ignoresScale: () => true,
  whole: true,
  offPolicy: true,
  plan: (spec, sampling) => planOf(spec, dpoObjective(spec, ofSamples(sampling))),
  advantages: (groups, { pairsPerTask }) => {
    let pair = 0;
    return groups.flatMap((group, g) =>
      pairsInwards(
        rewardedOf(group).map((one) => ({ ...one, worth: one.of.reward })),
        0,
      )
        .slice(0, pairsPerTask)
        .flatMap(({ better, worse }): SampleAdvantages[] => {
          const half = ({ sample, of }: typeof better, label: 1 | -1): SampleAdvantages => ({
            group: g,
            sample,
            advantages: of.mask.map((bit) => bit * label),
            pair,
            label,
          });
          const both = [half(better, 1), half(worse, -1)];
          pair++;
          return both;
        }),
    );
  },
  refuse: refuseDpo,
};
