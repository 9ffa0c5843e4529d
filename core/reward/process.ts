import type { ProcessRule } from '../schema/reward-rules.ts';
import { stepsOf } from '../episode/outcome.ts';
import type { JudgedSample, RuleVerdict } from './rule.ts';

/**
 * Pays for the steps that a verifier scored turn by turn: by the worst of them (Wang et al. 2024, Math-Shepherd), their
 * product (Lightman et al. 2023), or their mean. Never by their sum, which would pay for turns.
 */
export function processScore({ verifier, by }: ProcessRule, { verdicts }: JudgedSample): RuleVerdict {
  const said = verdicts.find((verdict) => verdict.verifier === verifier);
  const steps = said && stepsOf(said);
  if (steps === undefined) return { score: null, evidence: `${verifier} scored no steps` };
  const evidence = `${steps.length} steps of ${verifier}`;
  // Who does nothing has done nothing wrong, and is not paid for that.
  if (steps.length === 0) return { score: 0, evidence };
  switch (by) {
    case 'minimum':
      return { score: steps.reduce((a, b) => Math.min(a, b)), evidence };
    case 'product':
      return { score: steps.reduce((a, b) => a * b), evidence };
    default:
      return { score: Math.min(1, steps.reduce((a, b) => a + b) / steps.length), evidence };
  }
}
