import type { KtoObjective } from '../../../core/algorithms/objective.ts';
import { countedTokens, sumOver } from './counted-tokens.ts';
import { given } from './loss.ts';
import type { CoupledLoss } from './loss.ts';
import { sigmoid } from './sigmoid.ts';

/**
 * KTO (Ethayarajh et al. 2024, arXiv 2402.01306, eqs. 7 and 8), to be minimized: over the sequences of an update that are
 * desirable (label 1) or not (−1), the mean of λ_D (1 − σ(β (r − z₀))) or λ_U (1 − σ(β (z₀ − r))), where r is the
 * log-ratio log π − log π_ref, summed over the tokens that count. z₀ estimates KL(π ‖ π_ref) and has no gradient: the mean
 * of r over the update's sequences of label 0, completions put after other prompts, and 0 where that is below or where
 * there are none.
 */
export const ktoLoss = (settings: KtoObjective): CoupledLoss => ({
  kind: 'coupled',
  from: { temperature: settings.temperature, topK: settings.topK },
  ofSamples: false,
  clips: false,
  needs: [],
  needsOfSequences: ['label'],
  prefers: true,
  movesAll: true,
  reads: () => ['reference'],
  compute: (batch, sequences, { logprobs, reference }) => {
    const label = given(batch.sequences.label);
    const ratioOf = (tokens: readonly number[]) =>
      sumOver(tokens, logprobs) - sumOver(tokens, given(reference));
    const mismatched = sequences.filter((sequence) => label[sequence] === 0);
    const drift = mismatched.reduce((sum, sequence) => sum + ratioOf(countedTokens(batch, sequence)), 0);
    const z0 = mismatched.length === 0 ? 0 : Math.max(0, drift / mismatched.length);
    const judged = sequences.filter((sequence) => label[sequence] !== 0);
    const slopes = new Float32Array(logprobs.length);
    const rewards = { desirable: [] as number[], undesirable: [] as number[] };
    let [loss, right] = [0, 0];
    for (const sequence of judged) {
      const tokens = countedTokens(batch, sequence);
      const ratio = ratioOf(tokens);
      const side = label[sequence]! > 0 ? 1 : -1;
      const weight = side > 0 ? settings.desirableWeight : settings.undesirableWeight;
      const value = sigmoid(side * settings.beta * (ratio - z0));
      loss += weight * (1 - value);
      const slope = (-side * weight * settings.beta * value * (1 - value)) / judged.length;
      for (const token of tokens) slopes[token] = slope;
      right += Number(value > 0.5);
      rewards[side > 0 ? 'desirable' : 'undesirable'].push(settings.beta * ratio);
    }
    if (judged.length === 0) return { loss, slopes, preference: { margin: null, accuracy: null } };
    const [desirable, undesirable] = [meanOf(rewards.desirable), meanOf(rewards.undesirable)];
    const margin = desirable === null || undesirable === null ? null : desirable - undesirable;
    const count = judged.length;
    return { loss: loss / count, slopes, preference: { margin, accuracy: right / count } };
  },
});

const meanOf = (values: readonly number[]): number | null =>
  values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0) / values.length;
