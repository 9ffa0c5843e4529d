import { groupAdvantages } from '../core/advantage.ts';
import type { RolloutGroup } from '../core/episode.ts';
import { trainableReward } from '../core/outcome.ts';
import type { BatchRequest } from '../core/requests.ts';
import type { TrainBatch } from '../engine/learner/contract.ts';

/** One sequence on its way into a batch; all arrays have the same length. */
export interface TrainSequence {
  tokens: number[];
  mask: number[];
  advantages: number[];
  logprobs: number[];
}

/** Lays sequences end to end. */
export function packBatch(sequences: readonly TrainSequence[]): TrainBatch {
  const total = sequences.reduce((sum, { tokens }) => sum + tokens.length, 0);
  const batch: TrainBatch = {
    tokens: new Int32Array(total),
    offsets: new Int32Array(sequences.length + 1),
    mask: new Float32Array(total),
    advantages: new Float32Array(total),
    rolloutLogprobs: new Float32Array(total),
  };
  let at = 0;
  sequences.forEach((sequence, i) => {
    batch.tokens.set(sequence.tokens, at);
    batch.mask.set(sequence.mask, at);
    batch.advantages.set(sequence.advantages, at);
    batch.rolloutLogprobs.set(sequence.logprobs, at);
    at += sequence.tokens.length;
    batch.offsets[i + 1] = at;
  });
  return batch;
}

/**
 * What a step's episodes teach: group-relative advantages, spread over the sampled tokens. Groups without variance
 * and episodes without a trainable reward are left out, and counted. GRPO's mean runs over the groups without
 * variance too (their advantage is zero), so the others are scaled by their part of it, in tokens or in sequences as
 * the loss aggregates: the same gradient without the computation, and a step that few groups inform is a small one.
 */
export function trainingSequences(
  groups: readonly RolloutGroup[],
  { algorithm, truncated }: Pick<BatchRequest, 'algorithm' | 'truncated'>,
): { sequences: TrainSequence[]; degenerateGroups: number } {
  const sequences: TrainSequence[] = [];
  let degenerateGroups = 0;
  let leftOut = 0;
  const share = (mask: readonly number[]): number =>
    algorithm.aggregation === 'sequence' ? 1 : mask.reduce((sum, bit) => sum + bit, 0);
  for (const group of groups) {
    group.tasks.forEach((task, index) => {
      const episodes = group.episodes.filter((episode) => episode.task === index);
      const rewards = episodes.map(({ outcome }) => (outcome ? trainableReward(outcome, truncated) : null));
      const { advantages, degenerate } = groupAdvantages(rewards, algorithm.scaleRewards);
      if (degenerate) {
        degenerateGroups++;
        episodes.forEach((episode, i) => {
          if (rewards[i] !== null && !episode.learnt) leftOut += share(episode.mask);
        });
        return;
      }
      episodes.forEach((episode, i) => {
        const advantage = advantages[i];
        if (advantage === null || advantage === undefined || episode.learnt) return;
        const nothing = task.promptTokens.map(() => 0);
        sequences.push({
          tokens: [...task.promptTokens, ...episode.tokens],
          mask: [...nothing, ...episode.mask],
          advantages: [...nothing, ...episode.mask.map((bit) => bit * advantage)],
          logprobs: [...nothing, ...episode.logprobs],
        });
      });
    });
  }
  const kept = sequences.reduce((sum, { mask }) => sum + share(mask), 0);
  const scale = kept / (kept + leftOut);
  for (const sequence of sequences) sequence.advantages = sequence.advantages.map((one) => one * scale);
  return { sequences, degenerateGroups };
}
