import { z } from 'zod';
import { amount, count, positive } from '../fields.ts';
import type { SamplingSpec } from '../schema/sampling.ts';
import type {
  Aggregation,
  ClippedObjective,
  ImportanceCorrection,
  ImportanceRule,
  Objective,
} from './objective.ts';
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
    .enum(['truncate', 'mask', 'difference'])
    .default('truncate')
    .describe(
      'Beyond the bounds of the weight. truncate: the bound (TIS). mask: nothing (IcePop). difference: the bound, but nothing where the probability of the token has moved too far; the ratio is not clipped then (DPPO).',
    ),
  importanceFloor: positive(1, 'tokens of the policy itself would be weighed up')
    .optional()
    .describe('Lower bound of the importance weight. Default: 1 / importanceCap for mask, else none.'),
  differenceLow: positive(1, 'no two probabilities are further apart')
    .optional()
    .describe(
      'Of importanceRule difference: how far the probability of a token may fall where its advantage is negative. Default: 0.2.',
    ),
  differenceHigh: positive(1, 'no two probabilities are further apart')
    .optional()
    .describe(
      'Of importanceRule difference: how far the probability of a token may rise where its advantage is positive. Default: 0.2.',
    ),
};

/** What a section of the spec that has the fields of `importance` says of them. */
export interface ImportanceSpec {
  importanceCap: number;
  importanceRule: ImportanceRule;
  importanceFloor?: number | undefined;
  differenceLow?: number | undefined;
  differenceHigh?: number | undefined;
}

/** Of DPPO's authors (Qi et al. 2026). */
const DIFFERENCE = 0.2;

/** As the loss takes it; what a spec leaves out is in no stored plan. */
export const importanceCorrection = ({
  importanceCap,
  importanceRule,
  importanceFloor,
  differenceLow = DIFFERENCE,
  differenceHigh = DIFFERENCE,
}: ImportanceSpec): ImportanceCorrection => ({
  importanceCap,
  importanceRule,
  ...(importanceFloor !== undefined && { importanceFloor }),
  ...(importanceRule === 'difference' && { differenceLow, differenceHigh }),
});

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
  } & ImportanceSpec,
  sampling: SamplingSpec,
): ClippedObjective => ({
  kind: 'clipped',
  ...ofSamples(sampling),
  clipRatioLow: spec.clipRatioLow,
  clipRatioHigh: spec.clipRatioHigh,
  beta: spec.beta ?? 0,
  ...(spec.klEstimator === 'k2' && { klEstimator: 'k2' }),
  aggregation: spec.aggregation,
  ...importanceCorrection(spec),
  entropyBonus: spec.entropyBonus,
});

/**
 * Late verdicts and stored episodes need the weight, and a cap between 0 and 1 would weigh down tokens that need no
 * correction. Bounds that nothing reads are refused, too.
 */
export function refuseImportance(
  { importanceCap, importanceRule, importanceFloor, differenceLow, differenceHigh }: ImportanceSpec,
  { late, stored, lags }: MethodContext,
): { field: string; message: string }[] {
  const refused = (message: string, field = 'importanceCap') => [{ field, message }];
  if (stored && importanceCap === 0)
    return refused(
      'stored episodes were sampled by another policy than the one that is trained: set a cap above 0 (2, say), or leave out collect',
    );
  if (lags !== null && importanceCap === 0)
    return refused(
      `the policy that samples is behind the one that is trained: set a cap above 0 (2, say), or collect.${lags} to 0`,
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
  if (importanceCap === 0 && importanceRule === 'difference')
    return refused('of 0 leaves the rule difference out: give more (2, say), or another importanceRule');
  if (importanceCap === 0 && importanceFloor !== undefined)
    return refused(
      'bounds a weight that importanceCap 0 leaves out: give a cap, or leave it out',
      'importanceFloor',
    );
  if (importanceFloor === 1 && importanceRule === 'mask')
    return refused(
      'of 1 would mask every token that has become less likely by one bit: give less (0.5, say)',
      'importanceFloor',
    );
  if (importanceRule !== 'difference') {
    for (const [field, value] of Object.entries({ differenceLow, differenceHigh }))
      if (value !== undefined)
        return refused(`is read by importanceRule difference only: choose it, or leave ${field} out`, field);
  }
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
