import { z } from 'zod';
import { fraction, positive } from '../fields.ts';
import { criticFields, criticScores, criticShape, fromCritic, gae, plus } from './critic.ts';
import type { Method, MethodContext } from './method.ts';
import {
  clip,
  clippedObjective,
  entropyBonus,
  importance,
  passes,
  planOf,
  refuseImportance,
} from './surrogate.ts';

/**
 * VAPO, value-based augmented PPO (Yue et al. 2025, arXiv 2504.05118), PPO for long answers:
 *
 *   the critic is trained alone for `critic.pretrainingSteps` (section 4.1);
 *   decoupled GAE: λ = 1 for the critic's targets, and for the policy λ = 1 − 1 / (α l) of an answer of l sampled
 *   tokens (eq. 8), at least 0;
 *   loss: clip-higher, mean over all tokens (sections 4.2 and 4.3).
 *
 * `alpha` is 1 by default: at the paper's 0.05 λ is 0 for answers of 20 tokens, and a small policy forgot everything
 * (docs/log.md). Its further term that imitates right answers (section 4.3, eq. 13) is left out: `rft` does that.
 */
const schema = z.strictObject({
  kind: z
    .literal('vapo')
    .describe('PPO with a pretrained critic and a λ that follows the length (Yue et al. 2025).'),
  gamma: fraction.default(1).describe('Discount from token to token.'),
  alpha: positive(1000, 'λ is 1 by then')
    .default(1)
    .describe(
      'Of λ = 1 − 1 / (α · length), at least 0. The paper has 0.05, for answers of thousands of tokens.',
    ),
  ...criticFields,
  critic: z
    .strictObject({ ...criticShape, pretrainingSteps: criticShape.pretrainingSteps.default(5) })
    .prefault({})
    .describe('A network of its own that predicts what is still to come, trained first for some steps.'),
  ...clip,
  ...entropyBonus,
  ...passes,
  ...importance,
});

export const vapo: Method<typeof schema> = {
  schema,
  perGroup: false,
  readsTurns: true,
  offPolicy: false,
  plan: (spec, sampling) =>
    planOf(spec, clippedObjective({ ...spec, aggregation: 'token' }, sampling), {
      critic: spec.critic,
      contrast: 'step',
      scores: criticScores(spec),
    }),
  advantages: (groups, spec) =>
    fromCritic(groups, spec, (rewards, values) => ({
      advantages: gae(rewards, values, spec.gamma, Math.max(0, 1 - 1 / (spec.alpha * values.length))),
      returns: plus(gae(rewards, values, spec.gamma, 1), values),
    })),
  refuse: (spec, context) => [...refuseImportance(spec, context), ...refuseAlpha(spec, context)],
};

/** Of the longest answer that there may be. */
const LEAST_LAMBDA = 0.95;

function refuseAlpha({ alpha }: { alpha: number }, { maxCompletionTokens: longest }: MethodContext) {
  const lambda = Math.max(0, 1 - 1 / (alpha * longest));
  const least = Math.min(1, 1 / ((1 - LEAST_LAMBDA) * longest));
  if (alpha >= least) return [];
  const message = `makes λ 0 for answers of ${Math.floor(1 / alpha)} tokens or fewer, and ${round(lambda)} for the longest, of sampling.maxCompletionTokens ${longest}: give ${round(least)} or more (1, say; 0.05 is for thousands of tokens)`;
  return [{ field: 'alpha', message }];
}

const round = (value: number): number => Number(value.toPrecision(3));
