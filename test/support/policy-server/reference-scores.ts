import type { ModelConfig, Weights } from '../../../core/model/config.ts';
import { randomKey } from '../../../core/random.ts';
import { createDecoder } from '../../../engine/decoder/decoder.ts';
import type { LoraAdapter } from '../../../engine/lora/adapter.ts';

/** Log-probabilities in nats that our own decoder gives `tokens` after `prompt`. */
export type Scores = (
  prompt: readonly number[],
  tokens: readonly number[],
  temperature?: number,
) => Promise<number[]>;

/** A decoder of ours with these weights, for as long as `use` lasts. */
export async function withScores<T>(
  config: ModelConfig,
  weights: Weights,
  adapter: LoraAdapter | undefined,
  use: (scores: Scores) => Promise<T>,
): Promise<T> {
  const decoder = createDecoder({ threads: 1 });
  try {
    await decoder.load('reference', config, weights, adapter);
    let sessions = 0;
    return await use(async (prompt, tokens, temperature = 1) => {
      const session = `score ${++sessions}`;
      const scores: number[] = [];
      for (const [at, token] of tokens.entries()) {
        const { alternatives } = await decoder.sample({
          session,
          prefix: prompt,
          continuation: tokens.slice(0, at),
          maxNewTokens: 1,
          stopTokens: [],
          sampling: { temperature, topK: 0, topP: 1 },
          key: randomKey('reference'),
          alternatives: { most: 0, also: [token] },
        });
        scores.push(alternatives![0]!.find((one) => one.token === token)!.logprob);
      }
      decoder.release(session);
      return scores;
    });
  } finally {
    await decoder.close();
  }
}

/** The largest difference; infinite where the lengths differ. */
export function gap(one: readonly (number | null)[], other: readonly number[]): number {
  if (one.length !== other.length) return Infinity;
  return Math.max(0, ...one.map((value, i) => Math.abs((value ?? Infinity) - other[i]!)));
}
