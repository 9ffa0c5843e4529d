import { z } from 'zod';
import type { LearnedTier } from '../ladder/learned-tier.ts';
import { ABSTENTION_RULES } from '../ladder/policy.ts';
import { LADDER } from '../ladder/requests.ts';
import { TIERS } from '../episode/outcome.ts';
import type { Tier } from '../episode/outcome.ts';
import type { Refuse, SpecEnvironment } from './check.ts';
import { amount, budget, concurrency, count, deadlineSeconds, fraction, givenName } from '../fields.ts';
import { didYouMean } from '../did-you-mean.ts';
import type { WrittenReward } from './reward.ts';

export const verificationSchema = z
  .strictObject({
    rungs: z
      .array(
        z.strictObject({
          verifier: givenName.describe('A verifier of the environment; its tier says where it runs.'),
          passAtLeast: fraction.describe(
            'The score from which on a candidate is escalated to the next tier.',
          ),
          escalate: z
            .strictObject({
              valueAtLeast: fraction
                .default(1)
                .describe('The least score that the next tier is expected to give.'),
              uncertaintyAtLeast: amount(1, 'of a score in [0, 1]; more is impossible')
                .default(1)
                .describe('The least standard deviation of that expectation.'),
            })
            .prefault({})
            .describe(
              'A candidate that does not pass is escalated all the same if the next tier is expected to give it this score, with this standard deviation.',
            ),
          wait: z.boolean().default(true).describe('A step waits for the verdicts of this tier.'),
          deadlineSeconds: deadlineSeconds.default(3600).describe('How long it waits at most.'),
          missing: z
            .enum(['cheaper', 'pending'])
            .default('cheaper')
            .describe(
              'While a verdict is missing: the verdict of the tier below stands, or the episode is pending.',
            ),
          abstains: z
            .enum(ABSTENTION_RULES)
            .default(ABSTENTION_RULES[0])
            .describe(
              'What an episode is worth that the tier below passed and that this one cannot judge. zero: nothing (a transient abstention leaves it without a reward). expected: the score that the highest tier is expected to give. abstained: it has no reward, which a policy may learn to prefer.',
            ),
          budget: budget.prefault({}),
          concurrency: concurrency.default(16).describe('Computations in flight at once.'),
          reviewers: count(99, 'more people will not agree to review')
            .default(1)
            .describe('How many people review, where people give the verdict; more than half must agree.'),
        }),
      )
      .min(2)
      .max(8, 'has at most 8 tiers')
      .describe('The tiers in the order in which candidates are escalated, the cheapest first.'),
    offerLateFor: z
      .int()
      .min(0)
      .max(32)
      .default(0)
      .describe(
        'Steps within which a late verdict brings its stale group into a batch again, with reward corrections; 0: never.',
      ),
    counts: z
      .enum(['verdicts', 'computations'])
      .default('verdicts')
      .describe(
        "What a budget's count counts. verdicts: those that the run asks for, known or not, so that it ends the same in any store. computations: those that are made for the run; known verdicts are free.",
      ),
    evaluateBy: givenName
      .optional()
      .describe(
        'The tier that judges every held-out answer which the lowest one passes. Default: the highest tier that steps wait for and that has no budget.',
      ),
  })
  .describe(
    'The verification ladder, cheapest tier first. In the reward, "ladder" names the verdict of its highest tier.',
  );

export type WrittenVerification = z.output<typeof verificationSchema>;

export type TierSpec = WrittenVerification['rungs'][number] & { tier: Tier };

/** The ladder up which candidates are escalated, from the fast tier to the highest. */
export type VerificationSpec = Omit<WrittenVerification, 'rungs' | 'evaluateBy'> & {
  rungs: TierSpec[];
  /** The tier whose verdict counts where a checkpoint is measured; the lowest one asks no higher verifier. */
  evaluateBy: string;
  /** A reward model that speaks for the lowest tier once its stage has ended. */
  learned?: LearnedTier;
};

/** `environment`: any that the run uses, for all have the verifiers; where their tiers differ, its own count. */
export function verificationOf(
  written: WrittenVerification,
  { verifiers }: SpecEnvironment,
  learned?: LearnedTier,
): VerificationSpec {
  const tierOf = (name: string): Tier => verifiers.find((verifier) => verifier.name === name)!.tier;
  return {
    ...written,
    evaluateBy: written.evaluateBy ?? whatAllCanHave(written.rungs),
    rungs: written.rungs.map((tier) => ({ ...tier, tier: tierOf(tier.verifier) })),
    ...(learned && { learned }),
  };
}

/** The tiers as a person would write them. */
export const writtenTiers = ({ rungs }: Pick<VerificationSpec, 'rungs'>): WrittenVerification['rungs'] =>
  rungs.map((rung) => {
    const { tier: _, ...written } = rung;
    return written;
  });

/** The highest tier that can judge every candidate: steps wait for it, and no budget ends it. */
const whatAllCanHave = (tiers: WrittenVerification['rungs']): string =>
  tiers.findLast(({ wait, budget }, i) => i === 0 || (wait && Object.keys(budget).length === 0))!.verifier;

/** `environments`: those that the run uses. */
export function checkVerification(
  verification: WrittenVerification,
  { components }: WrittenReward,
  environments: readonly SpecEnvironment[],
  refuse: Refuse,
): void {
  const names = verification.rungs.map(({ verifier }) => verifier);
  if (!components.some(({ verifier, role }) => verifier === LADDER && role === 'outcome')) {
    refuse(
      ['verification'],
      `does nothing unless reward.components has { "verifier": "${LADDER}", "role": "outcome" }`,
    );
  }
  const { evaluateBy } = verification;
  if (evaluateBy !== undefined && !names.includes(evaluateBy)) {
    refuse(['verification', 'evaluateBy'], `no tier has this verifier${didYouMean(evaluateBy, names)}`);
  }
  verification.rungs.forEach(({ verifier: name }, i) => {
    const at = ['verification', 'rungs', i, 'verifier'];
    if (names.indexOf(name) !== i) refuse(at, `"${name}" is already a tier`);
    for (const environment of environments) {
      const known = environment.verifiers.find((other) => other.name === name);
      if (!known) {
        const valid = environment.verifiers.map((verifier) => verifier.name);
        refuse(at, `environment "${environment.name}" has no verifier "${name}"${didYouMean(name, valid)}`);
        continue;
      }
      if (i === 0 && known.tier !== 'fast')
        refuse(at, `is of tier ${known.tier}; the lowest one must be fast`);
      if (i > 0 && known.tier === 'fast') refuse(at, 'is a fast verifier; only the lowest tier may be one');
      const below = environment.verifiers.find((other) => other.name === names[i - 1]);
      if (below && TIERS.indexOf(known.tier) < TIERS.indexOf(below.tier)) {
        refuse(
          at,
          `of tier ${known.tier} lies above "${below.name}" of tier ${below.tier}: put the cheaper one first`,
        );
      }
    }
  });
}
