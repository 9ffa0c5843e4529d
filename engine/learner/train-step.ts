import type { Tensor } from '@tensorflow/tfjs';
import { GradusError } from '../../core/errors.ts';
import type { Backend } from './backend.ts';
import {
  DEFAULT_COMPUTE,
  type KeptSets,
  type TrainBatch,
  type TrainMetrics,
  type TrainSettings,
  type TrainState,
} from './contract.ts';
import type { DeviceState } from './device-state.ts';
import { createMicroBatches, dispose } from './micro-batches.ts';
import { lossOf } from './losses/index.ts';
import { linear } from './losses/linear.ts';
import type { CoupledResult, TokenInput } from './losses/loss.ts';
import { maskOf, movesWeights } from './sequences.ts';
import { rateAt } from './optimizer/adam.ts';
import { clipProgram } from './optimizer/clip-program.ts';
import { logprobProgram, trainingProgram } from './programs.ts';
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
  const loss = lossOf(objective);
  const started = performance.now();
  const sequences = Array.from({ length: batch.offsets.length - 1 }, (_, i) => i);
  const computed = sequences.filter((sequence) => movesWeights(batch, loss, sequence));
  const mask = maskOf(batch, computed);
  const length = rowLength(batch.offsets, computed);
  const { threads } = backend;
  // A row for each core at the least, unless somebody has said how much memory there is.
  const positions = compute.microBatchTokens || Math.max(positionsFor(config.vocabSize), threads * length);
  const pack = (chosen: number[]) =>
    packRows(batch.tokens, batch.offsets, chosen, length, positions, threads);
  // Cut and weighted as if everything were computed.
  const moving = new Set(computed);
  const updates = batch.updates.map((given) => {
    const minibatch = [...given];
    const own = minibatch.filter((sequence) => moving.has(sequence));
    return { minibatch, own, rows: pack(own) };
  });
  const single = updates.length === 1;

  const wanted = loss.reads(single);
  const scored = batch.streams.reference === undefined && wanted.includes('reference');
  const passes = Number(wanted.includes('old')) + Number(scored);
  const all = passes > 0 ? pack(computed) : [];
  const passesOfUpdate = loss.kind === 'coupled' ? 2 : 1;
  const total =
    passes * all.length + passesOfUpdate * updates.reduce((sum, { rows }) => sum + rows.length, 0);
  let done = 0;
  const { topK } = loss.from;
  const kept = topK === 0 ? undefined : { sets: batch.kept ?? nothingCut(batch), most: topK };
  const micro = createMicroBatches(backend, runner, batch.tokens.length, kept, () => {
    step.onProgress?.(++done, total);
  });

  // Zero where nothing counts, for a weight of zero does not make up for an exponential that overflows: Inf · 0 is NaN.
  const counted = (values: Float32Array): Float32Array =>
    values.map((value, i) => (mask[i] === 1 ? value : 0));
  const logprobsNow = logprobProgram(backend, model, loss.from);
  const perToken: Partial<Record<TokenInput, Float32Array>> = {};
  for (const name of wanted) {
    if (name !== 'old' && batch.streams[name]) perToken[name] = counted(batch.streams[name]);
  }
  if (scored) {
    const program = logprobProgram(backend, { config, compute }, loss.from);
    perToken.reference = counted(await micro.logprobs(program, reference!, all));
    refuseNonFinite(perToken.reference, 'the reference');
  }
  if (wanted.includes('old')) {
    perToken.old = counted(await micro.logprobs(logprobsNow, [...frozen, ...adam.weights()], all));
    refuseNonFinite(perToken.old, 'the weights that the step starts from');
  }

  const minimized = loss.kind === 'token' ? loss : linear(loss.from);
  const program = trainingProgram(backend, model, minimized, single);
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
  const sums = { loss: 0, gradientNorm: 0, entropy: 0, kl: 0, clipped: 0, margin: 0, accuracy: 0, tokens: 0 };
  let parentLogprobs = perToken.old;
  for (const [index, { minibatch, rows }] of updates.entries()) {
    const parameters = [...frozen, ...adam.weights()];
    const before = parent.updates + index;
    let coupled: CoupledResult | undefined;
    let inputs: Float32Array[];
    if (loss.kind === 'token') {
      inputs = [loss.weights(batch, minibatch), ...wanted.map((name) => perToken[name]!)];
    } else {
      const logprobs = counted(await micro.logprobs(logprobsNow, parameters, rows));
      refuseNonFinite(logprobs, `the weights before update ${before + 1}`);
      coupled = loss.compute(batch, minibatch, { ...perToken, logprobs });
      inputs = [coupled.slopes];
    }
    const result = await micro.gradient(program, parameters, rows, mask, inputs);
    // With a single update its own forward pass runs under the parent's weights.
    parentLogprobs ??= result.logprobs;

    try {
      refuseNonFinite(result.logprobs, `the weights before update ${before + 1}`);
    } catch (error) {
      dispose(result.gradients);
      throw error;
    }
    // What teaches nothing has a gradient of zero, and Adam's moments decay by it as by any other.
    const whole =
      result.gradients.length > 0
        ? result.gradients
        : adam.weights().map((weight) => backend.tf.zerosLike(weight));
    const { norm, gradients } = await clip(whole);
    const value = coupled?.loss ?? result.loss;
    if (!Number.isFinite(value) || !Number.isFinite(norm)) {
      dispose(gradients);
      throw new GradusError(
        'learner',
        'diverged',
        `update ${before + 1}: loss ${value}, gradient norm ${norm}. ` +
          'Lower the learning rate, clip the gradient norm, or look at the advantages of this batch.',
      );
    }
    adam.update(gradients, rateAt(optimizer, before), before + 1, optimizer);
    dispose(gradients);

    sums.loss += value;
    sums.gradientNorm += norm;
    sums.entropy += result.entropy;
    sums.kl += result.kl;
    sums.clipped += coupled?.clipped?.reduce((sum, bit) => sum + bit, 0) ?? result.clipped;
    sums.margin += coupled?.preference?.margin ?? 0;
    sums.accuracy += coupled?.preference?.accuracy ?? 0;
    sums.tokens += result.tokens;
  }
  const tokens = Math.max(1, sums.tokens);
  // What the weights that the step starts from have sampled.
  const own = computed.filter((sequence) => loss.ofSamples && batch.sequences.late?.[sequence] !== 1);
  return {
    loss: sums.loss / updates.length,
    gradientNorm: sums.gradientNorm / updates.length,
    entropy: sums.entropy / tokens,
    kl: sums.kl / tokens,
    clipFraction: sums.clipped / tokens,
    ...(loss.prefers && {
      preference: { margin: sums.margin / updates.length, accuracy: sums.accuracy / updates.length },
    }),
    ...logprobGap(batch.streams.rollout, maskOf(batch, own), parentLogprobs!),
    updates: updates.length,
    tokens: updates.reduce((sum, { own }) => sum + lengthOf(batch, own), 0),
    seconds: (performance.now() - started) / 1000,
  };
}

const nothingCut = ({ tokens }: TrainBatch): KeptSets => ({
  ids: new Int32Array(0),
  offsets: new Int32Array(tokens.length + 1),
});

const lengthOf = ({ offsets }: TrainBatch, sequences: readonly number[]): number =>
  sequences.reduce((sum, sequence) => sum + offsets[sequence + 1]! - offsets[sequence]!, 0);

/** Throws GradusError('learner', 'diverged'): `logprobs` [total] are 0 where nothing counts. */
function refuseNonFinite(logprobs: Float32Array, whose: string): void {
  const bad = logprobs.findIndex((logprob) => !Number.isFinite(logprob));
  if (bad < 0) return;
  throw new GradusError(
    'learner',
    'diverged',
    `the log-prob of token ${bad} of the batch is ${logprobs[bad]} under ${whose}: ` +
      'these weights are broken, or hold for impossible what was sampled. Go back to an earlier checkpoint, or lower the learning rate.',
  );
}

/** How far the learner's log-probs are from those that the rollout engine reported, over the tokens of `mask`; null without any. */
function logprobGap(rollout: Float32Array | undefined, mask: Float32Array, logprobs: Float32Array) {
  let max = 0;
  let sum = 0;
  let count = 0;
  mask.forEach((masked, i) => {
    if (masked !== 1 || !rollout) return;
    const gap = Math.abs(logprobs[i]! - rollout[i]!);
    max = Math.max(max, gap);
    sum += gap;
    count++;
  });
  if (count === 0) return { logprobGapMax: null, logprobGapMean: null };
  return { logprobGapMax: max, logprobGapMean: sum / count };
}
