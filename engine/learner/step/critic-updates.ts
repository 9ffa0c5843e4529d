import { DEFAULT_COMPUTE } from '../contract.ts';
import type { CriticSettings, TrainMetrics } from '../contract.ts';
import { rewardModelLoss } from '../losses/reward-model.ts';
import { sigmoid } from '../losses/sigmoid.ts';
import { criticProgram, slopeProgram, valueProgram } from '../programs/critic-programs.ts';
import { tokenWeights } from '../losses/token-weights.ts';
import { createMicroBatches, dispose } from '../batch/micro-batches.ts';
import type { Adam } from '../optimizer/adam.ts';
import { descend } from '../optimizer/descend.ts';
import type { StepContext } from './policy-updates.ts';
import { refuseNonFinite } from './refuse-non-finite.ts';
import { packing } from '../batch/row-packing.ts';
import { maskOf, sequencesOf } from '../batch/sequences.ts';
import type { NetworkUpdates } from './train-step.ts';

/** The critic's updates: a mean over tokens, or of what a reward model compares, on all sequences of each update. */
export function criticUpdates(
  { backend, runner, parent, batch, compute = DEFAULT_COMPUTE, advance }: StepContext,
  { clip, optimizer, loss: ofRewardModel }: CriticSettings,
  adam: Adam,
): NetworkUpdates<NonNullable<TrainMetrics['critic']>> {
  const { config } = parent;
  const all = sequencesOf(batch);
  const mask = maskOf(batch, all);
  const pack = packing(backend, config, compute, batch, all);
  const updates = batch.updates.map((given) => ({ minibatch: [...given], rows: pack([...given]) }));
  const micro = createMicroBatches(backend, runner, batch.tokens.length, undefined, advance);
  const program = ofRewardModel
    ? slopeProgram(backend, { config, compute })
    : criticProgram(backend, { config, compute }, clip);
  // What stands where nothing counts is read by nobody.
  const counted = (values: Float32Array) => values.map((value, i) => (mask[i] === 1 ? value : 0));
  const returns = counted(batch.streams.returns!);
  const streams = [returns, ...(clip > 0 ? [counted(batch.streams.values!)] : [])];
  const sums = { loss: 0, gradientNorm: 0, clipped: 0, tokens: 0, compared: 0, right: 0 };
  /** The loss of a reward model is arithmetic on its values, so these come first. */
  const compare = async (minibatch: number[], rows: (typeof updates)[number]['rows']) => {
    if (!ofRewardModel) return null;
    const values = await micro.perToken(valueProgram(backend, { config, compute }), adam.weights(), rows);
    return rewardModelLoss(ofRewardModel, batch, minibatch, counted(values));
  };
  const [residuals, targets] = [spread(), spread()];
  return {
    passes: updates.reduce((sum, { rows }) => sum + rows.length * (ofRewardModel ? 2 : 1), 0),
    begin: () => Promise.resolve(),
    update: async (index) => {
      const { minibatch, rows } = updates[index]!;
      const before = (parent.critic?.updates ?? 0) + index;
      const name = `update ${before + 1} of the critic`;
      const compared = await compare(minibatch, rows);
      const given = compared
        ? [compared.slopes]
        : [tokenWeights(batch, minibatch, { aggregation: 'token', maxCompletionTokens: 0 }), ...streams];
      const result = await micro.gradient(program, adam.weights(), rows, mask, given, 1);
      try {
        refuseNonFinite(result.perToken, `the critic before ${name}`, 'value');
      } catch (error) {
        dispose(result.gradients);
        throw error;
      }
      const { gradients } = result;
      const loss = compared?.loss ?? result.loss;
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
      sums.compared += compared?.compared ?? 0;
      sums.right += compared?.right ?? 0;
      if (ofRewardModel === 'bradley-terry') return;
      maskOf(batch, minibatch).forEach((bit, i) => {
        if (bit !== 1) return;
        const predicted = result.perToken[i]!;
        residuals.add(returns[i]! - (ofRewardModel ? sigmoid(predicted) : predicted));
        targets.add(returns[i]!);
      });
    },
    metrics: () => ({
      loss: sums.loss / updates.length,
      gradientNorm: sums.gradientNorm / updates.length,
      clipFraction: clip > 0 ? sums.clipped / Math.max(1, sums.tokens) : null,
      explainedVariance: targets.variance() > 0 ? 1 - residuals.variance() / targets.variance() : null,
      ...(ofRewardModel && { accuracy: sums.right / Math.max(1, sums.compared) }),
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
