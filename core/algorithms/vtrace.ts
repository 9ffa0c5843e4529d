import { z } from 'zod';
import { fraction, positive } from '../fields.ts';
import { criticFields, criticScores, fromCritic } from './critic.ts';
import type { ReturnEstimate } from './critic.ts';
import type { Method } from './method.ts';
import type { Sample } from './sample.ts';
import { atSampled, sampledAt, scoreOf } from './sampled.ts';
import { clip, clippedObjective, entropyBonus, passes, planOf, tokenMean } from './surrogate.ts';

/**
 * Off-policy targets for a critic, for samples of an engine or a policy that is not the one that learns, such as stored
 * ones. With the ratios π/μ of the weights that the step starts from to those that sampled, ρ = min(ρ̄, π/μ) and
 * c = λ min(c̄, π/μ):
 *
 *   `vtrace` (Espeholt et al. 2018, arXiv 1802.01561, eq. 1 and section 4.2):
 *     v_s = V_s + ρ_s δ_s + γ c_s (v_{s+1} − V_{s+1}),   A_s = r_s + γ v_{s+1} − V_s;
 *   `retrace` (Munos et al. 2016, arXiv 1606.02647, eq. 4, with V for Q):
 *     Q_s = r_s + γ V_{s+1} + γ c_{s+1} (Q_{s+1} − V_{s+1}),   A_s = Q_s − V_s,
 *     v_s = V_s + ρ_s A_s (ACER, Wang et al. 2017, section 3.1).
 *
 * The gradient of the policy is that of ρ_s A_s log π, A whitened before it is weighed. ρ is in the advantages, and in
 * them alone: the loss is PPO's without an importance weight, whose ratio and clip are to the weights that the step
 * starts from (decoupled: Hilton et al. 2022, arXiv 2110.00641). In a step's first update the ratio is 1.
 */
const schema = z.strictObject({
  kind: z.literal('vtrace').describe('Off-policy corrections of values by a critic (Espeholt et al. 2018).'),
  target: z
    .enum(['vtrace', 'retrace'])
    .default('vtrace')
    .describe('How values are corrected: V-trace (Espeholt et al. 2018) or Retrace (Munos et al. 2016).'),
  gamma: fraction.default(1).describe('Discount from token to token.'),
  lambda: fraction.default(1).describe('How far a correction reaches.'),
  rhoBar: positive(1e6, 'nothing is cut by then').default(1).describe('Cap of the weight of a step.'),
  cBar: positive(1e6, 'nothing is cut by then').default(1).describe('Cap of the weight of what follows.'),
  ...criticFields,
  ...clip,
  clipRatioHigh: clip.clipRatioHigh.default(0.2),
  ...entropyBonus,
  ...tokenMean,
  ...passes,
});

export const vtrace: Method<typeof schema> = {
  schema,
  perGroup: false,
  readsTurns: true,
  offPolicy: true,
  plan: (spec, sampling) =>
    planOf(spec, clippedObjective({ ...spec, importanceCap: 0, importanceRule: 'truncate' }, sampling), {
      critic: spec.critic,
      contrast: 'step',
      scores: criticScores(spec, ['policy']),
    }),
  advantages: (groups, spec) =>
    fromCritic(
      groups,
      spec,
      (rewards, values, sample) =>
        (spec.target === 'vtrace' ? vtraceOf : retraceOf)(rewards, values, ratiosOf(sample), spec),
      (sample) => scoreOf(sample, 'policy'),
    ),
};

type Caps = z.output<typeof schema>;

function ratiosOf(sample: Sample): number[] {
  const places = sampledAt(sample);
  const policy = atSampled(places, scoreOf(sample, 'policy'));
  return places.map((at, n) => Math.exp(policy[n]! - sample.samplerLogprobs[at]!));
}

function vtraceOf(rewards: number[], values: number[], ratios: number[], caps: Caps): ReturnEstimate {
  const { gamma, lambda, rhoBar, cBar } = caps;
  const returns = values.map(() => 0);
  const advantages = values.map(() => 0);
  for (let s = values.length - 1; s >= 0; s--) {
    const rho = Math.min(rhoBar, ratios[s]!);
    const [valueAfter, returnAfter] = [values[s + 1] ?? 0, returns[s + 1] ?? 0];
    const delta = rewards[s]! + gamma * valueAfter - values[s]!;
    const carried = gamma * lambda * Math.min(cBar, ratios[s]!) * (returnAfter - valueAfter);
    returns[s] = values[s]! + rho * delta + carried;
    advantages[s] = rewards[s]! + gamma * returnAfter - values[s]!;
  }
  return { advantages, returns, weights: ratios.map((ratio) => Math.min(rhoBar, ratio)) };
}

function retraceOf(rewards: number[], values: number[], ratios: number[], caps: Caps): ReturnEstimate {
  const { gamma, lambda, rhoBar, cBar } = caps;
  const advantages = values.map(() => 0);
  for (let s = values.length - 1; s >= 0; s--) {
    const after = s + 1 < values.length ? lambda * Math.min(cBar, ratios[s + 1]!) * advantages[s + 1]! : 0;
    advantages[s] = rewards[s]! + gamma * (values[s + 1] ?? 0) + gamma * after - values[s]!;
  }
  const weights = ratios.map((ratio) => Math.min(rhoBar, ratio));
  return { advantages, returns: values.map((value, s) => value + weights[s]! * advantages[s]!), weights };
}
