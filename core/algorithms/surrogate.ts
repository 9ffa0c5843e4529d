import { z } from 'zod';
import { amount, count, positive } from '../fields.ts';
import type { SamplingSpec } from '../schema/sampling.ts';
import type { Aggregation, ClippedObjective, Objective } from './objective.ts';
import type { MethodContext, Plan } from './method.ts';

// What methods have in common that reinforce sampled tokens by a clipped ratio. Each takes the fields that it reads.

/** Of one step; they become one batch. */
export const MOST_EPISODES = 65_536;

export const passes = {
  numIterations: count(100, "the batch is no longer the policy's own")
    .default(1)
    .describe('Passes over each batch.'),
  minibatch: count(MOST_EPISODES, 'a step has no more episodes')
    .default(128)
    .describe('Sequences per optimizer update at most; all updates of a step have about as many.'),
};

export const clip = {
  clipRatioLow: positive(1, 'a ratio is never below 0')
    .default(0.2)
    .describe('How far below 1 the ratio to the old policy still counts, where the advantage is negative.'),
  clipRatioHigh: positive(100, 'above it nothing is clipped')
    .default(0.28)
    .describe('How far above 1 the ratio to the old policy still counts, where the advantage is positive.'),
};

export const klToReference = {
  beta: amount(100, 'lower it: the policy would follow the KL alone')
    .default(0)
    .describe('Weight of the K3 KL to the warm start; 0 leaves it out.'),
};

export const tokenMean = {
  aggregation: z
    .enum(['token', 'sequence', 'dr-grpo'])
    .default('token')
    .describe(
      'What the loss is a mean over. token: all tokens (DAPO). sequence: tokens, then sequences (GRPO). dr-grpo: sequences, of the sum of tokens divided by sampling.maxCompletionTokens (Dr. GRPO).',
    ),
};

export const importance = {
  importanceCap: amount(1e6, '0 leaves the weight out')
    .default(0)
    .describe('Cap of the importance weight between learner and rollout; 0 leaves it out.'),
  importanceRule: z
    .enum(['truncate', 'mask'])
    .default('truncate')
    .describe('Beyond the cap: the cap (TIS), or nothing, as below 1 / cap (masked importance sampling).'),
};

export const entropyBonus = {
  entropyBonus: amount(10, 'lower it: the policy would become random')
    .default(0)
    .describe('Weight of the mean entropy, in nats, which the loss is lowered by; 0 leaves it out.'),
};

export const refills = {
  maxRefills: count(100, 'a policy that solves none or all of so many tasks needs others', 0)
    .default(0)
    .describe(
      'How often other tasks are drawn in place of those whose samples are all worth the same, or by dapo’s filter all succeed or all fail (dynamic sampling).',
    ),
};

/** What a clipped objective takes from a spec that has all fields of it. */
export const clippedObjective = (
  spec: {
    clipRatioLow: number;
    clipRatioHigh: number;
    beta?: number;
    klEstimator?: 'k2' | 'k3';
    entropyBonus: number;
    aggregation: Aggregation;
    importanceCap: number;
    importanceRule: 'truncate' | 'mask';
  },
  sampling: SamplingSpec,
): ClippedObjective => ({
  kind: 'clipped',
  ...ofSamples(sampling),
  clipRatioLow: spec.clipRatioLow,
  clipRatioHigh: spec.clipRatioHigh,
  beta: spec.beta ?? 0,
  ...(spec.klEstimator === 'k2' && { klEstimator: 'k2' }),
  aggregation: spec.aggregation,
  importanceCap: spec.importanceCap,
  importanceRule: spec.importanceRule,
  entropyBonus: spec.entropyBonus,
});

/**
 * Late verdicts and stored episodes need the weight, and a cap between 0 and 1 would weigh down tokens that need no
 * correction.
 */
export function refuseImportance(
  { importanceCap, importanceRule }: { importanceCap: number; importanceRule: 'truncate' | 'mask' },
  { late, stored, lags }: MethodContext,
) {
  const refused = (message: string) => [{ field: 'importanceCap', message }];
  if (stored && importanceCap === 0)
    return refused(
      'stored episodes were sampled by another policy than the one that is trained: set a cap above 0 (2, say), or leave out collect',
    );
  if (lags && importanceCap === 0)
    return refused(
      'the policy that samples is behind the one that is trained: set a cap above 0 (2, say), or collect.lag to 0',
    );
  if (late && importanceCap === 0)
    return refused(
      'late verdicts train on episodes of an earlier policy: set a cap above 0 (2, say), or verification.offerLateFor to 0',
    );
  if (importanceCap > 0 && importanceCap < 1)
    return refused(
      'below 1 also weighs down tokens of the policy itself: give 1 or more, or 0 to leave the weight out',
    );
  if (importanceCap === 1 && importanceRule === 'mask')
    return refused(
      'of 1 would mask every token whose weight is not 1 to the last bit: give more (2, say), or importanceRule truncate',
    );
  return [];
}

/** Whether a loss has more to it than advantages: a KL to the reference, or an entropy that is to be held up. */
const pullsAlways = (objective: Objective): boolean =>
  (objective.kind === 'clipped' && objective.beta > 0) ||
  ('entropyBonus' in objective && (objective.entropyBonus ?? 0) > 0);

const readsReference = (objective: Objective): boolean =>
  objective.kind === 'clipped' ? objective.beta > 0 : objective.kind === 'dpo' || objective.kind === 'kto';

/** A plan without scores, critic and refills, with the reference that its objective reads; what differs is given. */
export const planOf = (
  { minibatch, numIterations }: { minibatch: number; numIterations: number },
  objective: Objective,
  differences: Partial<Plan> = {},
): Plan => ({
  objective,
  scores: [],
  greedy: false,
  critic: null,
  reference: readsReference(objective),
  teachers: [],
  movesAll: pullsAlways(objective),
  hindsight: null,
  refills: 0,
  minibatch,
  epochs: numIterations,
  ...differences,
});

/** What log-probs of samples are of, and the longest completion. */
export const ofSamples = ({ temperature, topK, maxCompletionTokens }: SamplingSpec) => ({
  temperature,
  topK,
  maxCompletionTokens,
});
