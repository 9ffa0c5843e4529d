import type { DpoObjective } from '../../../core/algorithms/objective.ts';
import type { TrainBatch } from '../contract.ts';
import { countedTokens, sumOver } from './counted-tokens.ts';
import { given } from './loss.ts';
import type { CoupledLoss } from './loss.ts';
import { logSigmoid, sigmoid } from './sigmoid.ts';

/**
 * DPO (Rafailov et al. 2023, arXiv 2305.18290, eq. 7) over the pairs of an update, to be minimized: the mean of
 * −(1 − ε) log σ(β Δ) − ε log σ(−β Δ), where Δ is the log-ratio log π − log π_ref of the preferred sequence less that of
 * the other, each summed over the tokens that count, in all turns; ε is `labelSmoothing` (Mitchell 2023, "A note on DPO
 * with noisy preferences", eq. 3). `ipo`: the mean of (Δ − 1 / (2 β))² (Azar et al. 2023, arXiv 2310.12036, eq. 17).
 * Sequences without a pair teach nothing.
 */
export const dpoLoss = (settings: DpoObjective): CoupledLoss => ({
  kind: 'coupled',
  from: { temperature: settings.temperature, topK: settings.topK },
  ofSamples: false,
  clips: false,
  needs: [],
  needsOfSequences: ['pair', 'label'],
  problemOf: (batch) => {
    for (const [u, update] of batch.updates.entries()) {
      for (const [pair, { preferred, other }] of pairsOf(batch, update)) {
        if (preferred.length !== 1 || other.length !== 1) {
          return `update ${u + 1} has ${preferred.length} preferred and ${other.length} other sequences of pair ${pair}: it must have one of each`;
        }
      }
    }
    return null;
  },
  prefers: true,
  movesAll: true,
  reads: () => ['reference'],
  compute: (batch, sequences, { logprobs, reference }) => {
    const { beta, variant, labelSmoothing } = settings;
    const slopes = new Float32Array(logprobs.length);
    const pairs = [...pairsOf(batch, sequences).values()];
    let [loss, margin, right] = [0, 0, 0];
    for (const { preferred, other } of pairs) {
      const [chosen, rejected] = [preferred, other].map(([sequence]) => countedTokens(batch, sequence!));
      const ratio = (tokens: readonly number[]) =>
        sumOver(tokens, logprobs) - sumOver(tokens, given(reference));
      const difference = ratio(chosen!) - ratio(rejected!);
      // dL / dΔ of the pair.
      let slope: number;
      if (variant === 'ipo') {
        loss += (difference - 1 / (2 * beta)) ** 2;
        slope = 2 * (difference - 1 / (2 * beta));
      } else {
        loss -=
          (1 - labelSmoothing) * logSigmoid(beta * difference) +
          labelSmoothing * logSigmoid(-beta * difference);
        slope = beta * (sigmoid(beta * difference) - (1 - labelSmoothing));
      }
      for (const token of chosen!) slopes[token] = slope / pairs.length;
      for (const token of rejected!) slopes[token] = -slope / pairs.length;
      margin += beta * difference;
      right += Number(difference > 0);
    }
    if (pairs.length === 0) return { loss, slopes, preference: { margin: null, accuracy: null } };
    const count = pairs.length;
    return { loss: loss / count, slopes, preference: { margin: margin / count, accuracy: right / count } };
  },
});

/** The sequences of each pair of these, by its number. */
function pairsOf({ sequences: { pair, label } }: TrainBatch, sequences: Iterable<number>) {
  const pairs = new Map<number, { preferred: number[]; other: number[] }>();
  for (const sequence of sequences) {
    const number = given(pair)[sequence]!;
    if (number < 0) continue;
    const found = pairs.get(number) ?? { preferred: [], other: [] };
    pairs.set(number, found);
    (given(label)[sequence] === 1 ? found.preferred : found.other).push(sequence);
  }
  return pairs;
}
