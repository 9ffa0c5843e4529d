import { z } from 'zod';
import { MOST_TOP_K } from '../names.ts';
import type { Refuse } from './check.ts';
import { count, positive } from '../fields.ts';
import { MOST_POSITIONS } from './model.ts';

export const temperature = z
  .number()
  .min(0.01, 'must be at least 0.01: below it there is nothing to explore')
  .max(100, 'must be at most 100: above it every token is as likely');

export const samplingSchema = z
  .strictObject({
    temperature: temperature.default(1).describe('Logits are divided by it, in sampling and in the loss.'),
    topK: count(
      MOST_TOP_K,
      'the sampling mask of each token is stored with it; 0 samples among all tokens',
      0,
    )
      .default(0)
      .describe(
        'Sample among the k likeliest tokens, and train with the softmax over the same ones (the sampling mask); 0: among all.',
      ),
    topP: positive(1, '1 samples among all tokens')
      .default(1)
      .describe(
        'Sample among those of the topK likeliest that have this probability together; 1: all of them.',
      ),
    maxTurns: count(1000, 'each turn of each episode is stored')
      .default(8)
      .describe('Policy turns per episode.'),
    maxParallelCalls: count(100, 'each is made before the next turn')
      .optional()
      .describe(
        "Tool calls that a turn may make, one after the other (verl's max_parallel_calls). Default: 1. A turn with more makes none, and reads an error.",
      ),
    maxCompletionTokens: count(MOST_POSITIONS, 'no model has room for more')
      .default(160)
      .describe('Tokens after the prompt: sampled and observed.'),
  })
  .prefault({})
  .describe('How the policy samples episodes.');

export type SamplingSpec = z.output<typeof samplingSchema>;

/**
 * What sampling keeps is written down with every token, for the loss to speak of the same distribution. Of top-p alone
 * that has no bound.
 */
export function checkSampling({ topK, topP }: SamplingSpec, refuse: Refuse): void {
  if (topP < 1 && topK === 0)
    refuse(
      ['sampling', 'topP'],
      `may leave the whole vocabulary in the sampling mask, which is stored with each token: also give a topK of 2 to ${MOST_TOP_K}`,
    );
  if (topK === 1)
    refuse(['sampling', 'topK'], 'of 1 leaves nothing to choose and nothing to train: give 2 or more');
}
