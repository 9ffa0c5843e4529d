import type { Tensor } from '@tensorflow/tfjs';
import { GradusError } from '../../core/errors.ts';
import type { Backend } from './backend.ts';
import {
  DEFAULT_COMPUTE,
  type TrainBatch,
  type TrainMetrics,
  type TrainSettings,
  type TrainState,
} from './contract.ts';
import type { DeviceState } from './device-state.ts';
import { createMicroBatches, dispose } from './micro-batches.ts';
import { lossWeights, minibatches } from './minibatches.ts';
import { rateAt } from './optimizer/adam.ts';
import { clipProgram } from './optimizer/clip-program.ts';
import { logprobProgram, tokenInputs, trainingProgram, type TokenInput } from './programs.ts';
import { packRows, positionsFor, rowLength } from './row-packing.ts';
import type { Runner } from './runner.ts';

export interface StepArguments {
  parent: TrainState;
  /** Holds what the parent does, and afterwards the new state. */
  device: DeviceState;
  batch: TrainBatch;
  settings: TrainSettings;
  reference: Tensor[] | undefined;
  /** Counts micro-batches, with and without backward pass. */
  onProgress: ((done: number, total: number) => void) | undefined;
}

/**
 * All updates of a step on arguments that were checked. Throws GradusError('learner', 'diverged'), after which
 * `device` holds nothing of use.
 */
export async function trainStep(
  backend: Backend,
  runner: Runner,
  step: StepArguments,
): Promise<TrainMetrics> {
  const { parent, device, batch, settings, reference } = step;
  const { config } = parent;
  const { frozen, adam } = device;
  const { objective, optimizer, compute = DEFAULT_COMPUTE } = settings;
  const model = { config, lora: parent.adapter?.lora, compute };
  const started = performance.now();
  const length = rowLength(batch.offsets);
  const everything = Array.from({ length: batch.offsets.length - 1 }, (_, i) => i);
  const { threads } = backend;
  // A row for each core at the least, unless somebody has said how much memory there is.
  const positions = compute.microBatchTokens || Math.max(positionsFor(config.vocabSize), threads * length);
  const pack = (sequences: number[]) =>
    packRows(batch.tokens, batch.offsets, sequences, length, positions, threads);
  const updates = minibatches(everything.length, settings).map((sequences) => ({
    sequences,
    rows: pack(sequences),
  }));
  const single = updates.length === 1;

  const wanted = tokenInputs(objective, single);
  const passes = Number(wanted.includes('old')) + Number(wanted.includes('reference'));
  const all = passes > 0 ? pack(everything) : [];
  const total = passes * all.length + updates.reduce((sum, { rows }) => sum + rows.length, 0);
  let done = 0;
  const micro = createMicroBatches(backend, runner, batch.tokens.length, () => {
    step.onProgress?.(++done, total);
  });

  const temperature = objective.kind === 'grpo' ? objective.temperature : 1;
  const perToken: Partial<Record<TokenInput, Float32Array>> = {
    advantages: batch.advantages,
    rollout: batch.rolloutLogprobs,
  };
  if (wanted.includes('reference')) {
    const program = logprobProgram(backend, { config, compute }, temperature);
    perToken.reference = await micro.logprobs(program, reference!, all);
  }
  if (wanted.includes('old')) {
    const program = logprobProgram(backend, model, temperature);
    perToken.old = await micro.logprobs(program, [...frozen, ...adam.weights()], all);
  }

  const program = trainingProgram(backend, model, objective, single);
  const clipping = clipProgram(backend, optimizer.maxGradientNorm);
  const clip = async (given: Tensor[]): Promise<{ norm: number; gradients: Tensor[] }> => {
    const compute = await runner.prepare(clipping, given);
    const [norm, ...scaled] = backend.tf.tidy(() => compute(given));
    const [value] = norm!.dataSync();
    norm!.dispose();
    if (scaled.length === 0) return { norm: value!, gradients: given };
    dispose(given);
    return { norm: value!, gradients: scaled };
  };
  const metrics = { loss: 0, gradientNorm: 0, entropy: 0, kl: 0, clipFraction: 0 };
  let parentLogprobs = perToken.old;
  for (const [index, { sequences, rows }] of updates.entries()) {
    const inputs = [tokenWeights(step, sequences), ...wanted.map((name) => perToken[name]!)];
    const parameters = [...frozen, ...adam.weights()];
    const result = await micro.gradient(program, parameters, rows, batch.mask, inputs);
    // With a single update its own forward pass runs under the parent's weights.
    parentLogprobs ??= result.logprobs;
    if (result.gradients.length === 0) continue;

    const before = parent.updates + index;
    const { norm, gradients } = await clip(result.gradients);
    if (!Number.isFinite(result.loss) || !Number.isFinite(norm)) {
      dispose(gradients);
      throw new GradusError(
        'learner',
        'diverged',
        `update ${before + 1}: loss ${result.loss}, gradient norm ${norm}. ` +
          'Lower the learning rate, clip the gradient norm, or look at the advantages of this batch.',
      );
    }
    adam.update(gradients, rateAt(optimizer, before), before + 1, optimizer);
    dispose(gradients);

    const counted = Math.max(1, result.tokens) * updates.length;
    metrics.loss += result.loss / updates.length;
    metrics.gradientNorm += norm / updates.length;
    metrics.entropy += result.entropy / counted;
    metrics.kl += result.kl / counted;
    metrics.clipFraction += result.clipped / counted;
  }
  return {
    ...metrics,
    ...logprobGap(step, parentLogprobs!),
    updates: updates.length,
    tokens: settings.epochs * batch.tokens.length,
    seconds: (performance.now() - started) / 1000,
  };
}

/** What each token [total] weighs in the loss of a minibatch. Supervised, the example's own weight is a factor of it. */
function tokenWeights({ batch, settings: { objective } }: StepArguments, sequences: number[]): Float32Array {
  if (objective.kind === 'grpo') return lossWeights(batch, sequences, objective.aggregation);
  return lossWeights(batch, sequences, 'token').map((weight, i) => weight * batch.advantages[i]!);
}

/** How far the learner's log-probs are from those that the rollout engine reported, over masked tokens. */
function logprobGap({ batch, settings }: StepArguments, logprobs: Float32Array) {
  const none = { logprobGapMax: null, logprobGapMean: null };
  // A demonstration was not sampled.
  if (settings.objective.kind === 'supervised') return none;
  let max = 0;
  let sum = 0;
  let count = 0;
  batch.mask.forEach((masked, i) => {
    if (masked !== 1) return;
    const gap = Math.abs(logprobs[i]! - batch.rolloutLogprobs[i]!);
    max = Math.max(max, gap);
    sum += gap;
    count++;
  });
  return count === 0 ? none : { logprobGapMax: max, logprobGapMean: sum / count };
}
