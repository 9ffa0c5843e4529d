import { ABSTENTION_RULES } from '../../core/ladder/policy.ts';
import type { TierSpec } from '../../core/schema/verification.ts';

/** A tier of a ladder, as a spec has it that says nothing of the rest. */
export const tierSpec = (
  verifier: string,
  tier: TierSpec['tier'],
  over: Partial<TierSpec> = {},
): TierSpec => ({
  verifier,
  tier,
  passAtLeast: 0.5,
  escalate: { valueAtLeast: 1, uncertaintyAtLeast: 1 },
  abstains: ABSTENTION_RULES[0],
  wait: true,
  deadlineSeconds: 60,
  missing: 'cheaper',
  budget: {},
  concurrency: 4,
  reviewers: 1,
  ...over,
});
