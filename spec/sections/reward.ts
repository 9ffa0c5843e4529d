import { z } from 'zod';
import { LADDER } from '../../core/ladder/requests.ts';
import type { Rung } from '../../core/ladder/policy.ts';
import type { Refuse, SpecEnvironment } from '../check.ts';
import { amount, givenName } from '../../core/fields.ts';
import { didYouMean } from '../strict.ts';
import type { VerificationSpec } from './verification.ts';

export const rewardSchema = z.strictObject({
  components: z
    .array(
      z.strictObject({
        verifier: givenName,
        role: z
          .enum(['outcome', 'bonus', 'penalty'])
          .describe(
            'outcome: decides success, exactly one. bonus: adds weight × score. penalty: subtracts weight × (1 − score).',
          ),
        weight: amount(1000, 'weigh the others less').default(1),
        gatedBy: givenName
          .nullable()
          .default(null)
          .describe('Counts only where this verifier gave the full score.'),
      }),
    )
    .nonempty()
    .max(32, 'has at most 32 components'),
  truncated: z
    .enum(['train', 'mask'])
    .default('train')
    .describe('Episodes cut by a limit: trained on with their reward, or left out of loss and statistics.'),
});

export type WrittenReward = z.output<typeof rewardSchema>;

/** How verdicts become a reward: a weighted sum of components, each of them data. */
export interface RewardSpec extends WrittenReward {
  /** The lowest rung, which stands for the component `ladder` until a dearer one has spoken. */
  ladder?: Pick<Rung, 'verifier' | 'passAtLeast'>;
}
export type RewardComponentSpec = WrittenReward['components'][number];

export function rewardOf(reward: WrittenReward, verification: VerificationSpec | undefined): RewardSpec {
  if (!verification) return reward;
  const { verifier, passAtLeast } = verification.rungs[0]!;
  return { ...reward, ladder: { verifier, passAtLeast } };
}

/** `environments`: those that the run uses. */
export function checkReward(
  { components }: WrittenReward,
  hasLadder: boolean,
  environments: readonly SpecEnvironment[],
  refuse: Refuse,
): void {
  const outcomes = components.filter((component) => component.role === 'outcome').length;
  if (outcomes !== 1) {
    refuse(['reward', 'components'], `exactly one component must have role "outcome"; ${outcomes} have`);
  }
  components.forEach((component, i) => {
    const at = ['reward', 'components', i];
    for (const environment of environments) {
      const valid = [
        ...environment.verifiers.filter(({ tier }) => tier === 'fast').map(({ name }) => name),
        ...(hasLadder ? [LADDER] : []),
      ];
      if (!valid.includes(component.verifier)) {
        refuse(
          [...at, 'verifier'],
          `environment "${environment.name}" has no verifier "${component.verifier}"${didYouMean(component.verifier, valid)}`,
        );
      }
    }
    if (components.findIndex((other) => other.verifier === component.verifier) !== i) {
      refuse([...at, 'verifier'], `"${component.verifier}" is already a component`);
    }
    if (component.gatedBy !== null) {
      const valid = components.map((other) => other.verifier).filter((other) => other !== component.verifier);
      if (!valid.includes(component.gatedBy)) {
        refuse(
          [...at, 'gatedBy'],
          `"${component.gatedBy}" is no other component${didYouMean(component.gatedBy, valid)}`,
        );
      }
      if (component.role === 'outcome') refuse([...at, 'gatedBy'], 'the outcome cannot be gated: it decides');
    }
    if (component.role === 'outcome' && component.weight === 0)
      refuse([...at, 'weight'], 'the outcome would be worth nothing: give it a weight above 0');
  });
}
