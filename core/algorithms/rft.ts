import { z } from 'zod';
import { amount } from '../fields.ts';
import { overSamples } from './advantage.ts';
import type { SampleAdvantages } from './advantage.ts';
import type { Method } from './method.ts';
import { passes, planOf } from './surrogate.ts';

/**
 * RFT, rejection sampling fine-tuning (Yuan et al. 2023, arXiv 2308.01825), with several stages expert iteration (Anthony et
 * al. 2017): samples that succeed are imitated; with `negatives` those that fail are made less likely by unlikelihood
 * (Welleck et al. 2020). Of samples that are the same to the token the first one counts, as the paper keeps different
 * reasoning paths alone.
 *
 *   loss: negative log-likelihood of the sampled tokens, mean over tokens.
 */
const schema = z.strictObject({
  kind: z.literal('rft').describe('Imitates the samples that succeed (Yuan et al. 2023).'),
  mostPerTask: z
    .int()
    .min(1)
    .max(4096)
    .default(4)
    .describe(
      'Successes of one task that are imitated, the first ones: easy tasks must not drown the hard ones.',
    ),
  distinct: z
    .boolean()
    .default(true)
    .describe('Samples of a task that are the same to the token count once, and not each.'),
  negatives: amount(1, 'failures must not outweigh the imitated successes')
    .default(0)
    .describe('Weight of samples that fail; 0 leaves them out.'),
  ...passes,
});

export const rft: Method<typeof schema> = {
  schema,
  perGroup: false,
  readsTurns: false,
  branches: true,
  ignoresScale: () => true,
  whole: true,
  offPolicy: true,
  plan: (spec) => planOf(spec, { kind: 'supervised' }, { contrast: 'step' }),
  advantages: (groups, { mostPerTask, distinct, negatives }) =>
    groups.flatMap(({ samples }, group) => {
      const weighted = (succeeded: boolean, weight: number): SampleAdvantages[] => {
        const seen = new Set<string>();
        return overSamples(
          group,
          samples,
          samples.map(({ reward, success, tokens }) =>
            reward !== null && success === succeeded && !(distinct && isRepeated(tokens, seen))
              ? weight
              : null,
          ),
        );
      };
      return [
        ...weighted(true, 1).slice(0, mostPerTask),
        ...(negatives > 0 ? weighted(false, -negatives).slice(0, mostPerTask) : []),
      ];
    }),
};

/** Whether these tokens have been seen; from now on they have. */
function isRepeated(tokens: readonly number[], seen: Set<string>): boolean {
  const before = seen.size;
  return seen.add(tokens.join(' ')).size === before;
}
