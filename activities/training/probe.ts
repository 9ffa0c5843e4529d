import { randomKey, uniformInt } from '../../core/random.ts';
import type { ModelConfig } from '../../core/model/config.ts';
import type { Learner, TrainState } from '../../engine/learner/contract.ts';
import type { PolicyProbe } from '../../store/training/probes.ts';
import { packBatch } from './training-batch.ts';

/** Tokens of the fixed sequence: enough for rounding to average out. */
const PROBE_TOKENS = 256;

/** Tokens drawn at random, the same of all models with this vocabulary: an update moves them as it moves others. */
export function probeTokens({ vocabSize, maxPositions, maskedTokens = [] }: ModelConfig): number[] {
  const isMasked = (id: number) => maskedTokens.some(([from, to]) => id >= from && id < to);
  const ids = Array.from({ length: vocabSize }, (_, id) => id).filter((id) => !isMasked(id));
  const key = randomKey('policy-probe');
  // One more is sampled behind it.
  const length = Math.max(2, Math.min(PROBE_TOKENS, maxPositions - 2));
  return Array.from({ length }, (_, i) => ids[uniformInt(key, i, ids.length)]!);
}

/** What these weights make of the fixed sequence. Throws as `Learner.score`. */
export async function probeOf(
  learner: Learner,
  state: TrainState,
  signal: AbortSignal,
): Promise<PolicyProbe> {
  const tokens = probeTokens(state.config);
  const batch = packBatch([{ tokens, mask: tokens.map((_, i) => (i === 0 ? 0 : 1)), streams: {} }], {
    minibatch: 1,
    epochs: 0,
    seed: 0,
  });
  const { logprobs } = await learner.score(
    state,
    batch,
    { logprobs: { temperature: 1, topK: 0 } },
    undefined,
    signal,
  );
  return { tokens, logprobs: [...logprobs!.subarray(1)] };
}
