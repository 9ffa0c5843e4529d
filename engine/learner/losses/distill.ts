import type { DistillObjective } from '../../../core/algorithms/objective.ts';
import type { TrainBatch } from '../contract.ts';
import type { DistributionLoss } from './loss.ts';
import { tokenWeights } from './token-weights.ts';

/**
 * A divergence between student q and teacher p over the whole vocabulary, on the student's own trajectories (on-policy
 * distillation), to be minimized: the sum over tokens of w · D, where D is
 * - `reverse-kl`: KL(q ‖ p) (Gu et al. 2024, MiniLLM, arXiv 2306.08543, eq. 1; Lu 2025, "On-policy distillation"),
 * - `reverse-kl-each`: Σ weight · KL(q ‖ p_teacher), which is least where q is as the geometric mean of the teachers,
 * - `forward-kl`: KL(p ‖ q) (Hinton et al. 2015, arXiv 1503.02531),
 * - `jsd`: β KL(p ‖ m) + (1 − β) KL(q ‖ m), m = β p + (1 − β) q (Agarwal et al. 2024, GKD, arXiv 2306.13649, eq. 1),
 * both softmax(logits / temperature), without a factor for the temperature. No gradient flows through how the
 * trajectories were sampled. But for the second several teachers are one: p = Σ weight · p_teacher, the weights summing to 1; a sequence with
 * a `teacher` has that one alone.
 */
export const distillationLoss = (settings: DistillObjective): DistributionLoss => ({
  kind: 'distribution',
  key: JSON.stringify(settings),
  from: { temperature: settings.temperature, topK: 0 },
  ofSamples: true,
  clips: false,
  needs: [],
  problemOf: ({ sequences: { teacher } }) => {
    const odd = teacher?.find(
      (index) => !Number.isInteger(index) || index < -1 || index >= settings.teacherWeights.length,
    );
    if (odd === undefined) return null;
    return `a sequence has teacher ${odd}: there are 0 to ${settings.teacherWeights.length - 1}, or −1 for all of them by weight`;
  },
  movesAll: true,
  reads: () => [],
  divergence: settings.divergence,
  teachers: settings.teacherWeights.length,
  weights: (batch, sequences) => tokenWeights(batch, sequences, settings),
  shares: (batch) => settings.teacherWeights.map((weight, index) => shareOf(batch, weight, index)),
});

/** What a teacher's distribution counts for at each token [total]. */
function shareOf({ tokens, offsets, sequences }: TrainBatch, weight: number, index: number): Float32Array {
  const shares = new Float32Array(tokens.length).fill(weight);
  sequences.teacher?.forEach((own, sequence) => {
    if (own >= 0) shares.fill(Number(own === index), offsets[sequence], offsets[sequence + 1]);
  });
  return shares;
}
