import { DEFAULT_COMPUTE } from '../contract.ts';
import type { CriticSettings, TrainMetrics } from '../contract.ts';
import { criticProgram } from '../programs/critic-programs.ts';
import { tokenWeights } from '../losses/token-weights.ts';
import { createMicroBatches, dispose } from '../batch/micro-batches.ts';
import type { Adam } from '../optimizer/adam.ts';
import { descend } from '../optimizer/descend.ts';
import type { StepContext } from './policy-updates.ts';
import { refuseNonFinite } from './refuse-non-finite.ts';
import { packing } from '../batch/row-packing.ts';
import { maskOf, sequencesOf } from '../batch/sequences.ts';
import type { NetworkUpdates } from './train-step.ts';

/** The critic's updates: a mean over tokens, on all sequences of each update. */
export function criticUpdates(
  { backend, runner, parent, batch, compute = DEFAULT_COMPUTE, advance }: StepContext,
  { clip, optimizer }: CriticSettings,
  adam: Adam,
): NetworkUpdates<NonNullable<TrainMetrics['critic']>> {
  const { config } = parent;
  const all = sequencesOf(batch);
  const mask = maskOf(batch, all);
  const pack = packing(backend, config, compute, batch, all);
  const updates = batch.updates.map((given) => ({ minibatch: [...given], rows: pack([...given]) }));
  const micro = createMicroBatches(backend, runner, batch.tokens.length, undefined, advance);
  const program = criticProgram(backend, { config, compute }, clip);
  // What stands where nothing counts is read by nobody.
  const counted = (values: Float32Array) => values.map((value, i) => (mask[i] === 1 ? value : 0));
  const returns = counted(batch.streams.returns!);
  const streams = [returns, ...(clip > 0 ? [counted(batch.streams.values!)] : [])];
  const sums = { loss: 0, gradientNorm: 0, clipped: 0, tokens: 0 };
  const [residuals, targets] = [spread(), spread()];
  return {
    passes: updates.reduce((sum, { rows }) => sum + rows.length, 0),
    begin: () => Promise.resolve(),
    update: async (index) => {
      const { minibatch, rows } = updates[index]!;
      const before = (parent.critic?.updates ?? 0) + index;
      const name = `update ${before + 1} of the critic`;
      const weights = tokenWeights(batch, minibatch, { aggregation: 'token', maxCompletionTokens: 0 });
      const result = await micro.gradient(program, adam.weights(), rows, mask, [weights, ...streams], 1);
      try {
        refuseNonFinite(result.perToken, `the critic before ${name}`, 'value');
      } catch (error) {
        dispose(result.gradients);
        throw error;
      }
      const { gradients, loss } = result;
      const { norm } = await descend(backend, runner, adam, {
        gradients,
        loss,
        settings: optimizer,
        before,
        name,
      });
      sums.loss += loss;
      sums.gradientNorm += norm;
      sums.clipped += result.sums[0]!;
      sums.tokens += result.tokens;
      maskOf(batch, minibatch).forEach((bit, i) => {
        if (bit !== 1) return;
        residuals.add(returns[i]! - result.perToken[i]!);
        targets.add(returns[i]!);
      });
    },
    metrics: () => ({
      loss: sums.loss / updates.length,
      gradientNorm: sums.gradientNorm / updates.length,
      clipFraction: clip > 0 ? sums.clipped / Math.max(1, sums.tokens) : null,
      explainedVariance: targets.variance() > 0 ? 1 - residuals.variance() / targets.variance() : null,
    }),
  };
}

/** Variance of numbers as they come (Welford 1962). */
function spread() {
  let [count, mean, squares] = [0, 0, 0];
  return {
    add: (value: number): void => {
      const difference = value - mean;
      mean += difference / ++count;
      squares += difference * (value - mean);
    },
    variance: (): number => (count === 0 ? 0 : squares / count),
  };
}
