import { z } from 'zod';
import type { Refuse } from '../../check.ts';
import { amount, count, positive } from '../../fields.ts';
import type { Path } from '../../strict.ts';
import type { WrittenVerification } from '../verification.ts';

/** Of one step: they become one batch. */
export const MOST_EPISODES = 65_536;

export const algorithmSchema = z
  .strictObject({
    kind: z.literal('grpo').default('grpo'),
    scaleRewards: z
      .enum(['group', 'none'])
      .default('group')
      .describe(
        'Divide by the deviation of the group (GRPO), or not: Dr. GRPO is none with aggregation dr-grpo.',
      ),
    clipRatioLow: positive(1, 'a ratio is never below 0').default(0.2),
    clipRatioHigh: positive(100, 'above it nothing is clipped').default(0.28),
    beta: amount(100, 'lower it: nothing but the KL would be learnt')
      .default(0)
      .describe('Weight of the K3 KL to the warm start; 0 leaves it out.'),
    aggregation: z
      .enum(['token', 'sequence', 'dr-grpo'])
      .default('token')
      .describe(
        'What the loss is a mean over. token: all tokens (DAPO). sequence: tokens, then sequences (GRPO). dr-grpo: sequences, of the sum of tokens divided by sampling.maxCompletionTokens (Dr. GRPO).',
      ),
    numIterations: count(100, "the batch is no longer the policy's own")
      .default(1)
      .describe('Passes over each batch.'),
    minibatch: count(MOST_EPISODES, 'a step has no more episodes')
      .default(128)
      .describe('Sequences per optimizer update at most; all updates of a step have about as many.'),
    importanceCap: amount(1e6, '0 leaves the weight out')
      .default(0)
      .describe('Cap of the truncated importance weight between learner and rollout; 0 leaves it out.'),
  })
  .prefault({});

export type AlgorithmSpec = z.output<typeof algorithmSchema>;
export type Aggregation = AlgorithmSpec['aggregation'];

/** `path` is that of the section. */
export function checkAlgorithm(
  { importanceCap }: AlgorithmSpec,
  verification: WrittenVerification | undefined,
  path: Path,
  refuse: Refuse,
): void {
  const at = [...path, 'importanceCap'];
  if (importanceCap > 0 && importanceCap < 1) {
    refuse(
      at,
      'below 1 weighs down also what was sampled by the very policy: give 1 or more, or 0 to leave the weight out',
    );
  }
  if (importanceCap === 0 && verification !== undefined && verification.offerLateFor > 0) {
    refuse(
      at,
      'late verdicts bring episodes of an earlier policy before the learner: set a cap above 0 (2, say), or verification.offerLateFor to 0',
    );
  }
}
