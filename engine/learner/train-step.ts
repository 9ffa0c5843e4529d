import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Tensor } from '@tensorflow/tfjs';
import { GradusError } from '../../core/errors.ts';
import type { ModelConfig } from '../model-config.ts';
import type { Backend } from './backend.ts';
import type { TrainBatch, TrainMetrics, TrainSettings } from './contract.ts';
import { lossWeights, minibatches } from './minibatches.ts';
import { rateAt, type Adam } from './optimizer/adam.ts';
import { clipGradients, gradientNorm } from './optimizer/gradient-norm.ts';
import { logprobProgram, tokenInputs, trainingProgram, type TokenInput } from './programs.ts';
import { gather, packRows, positionsFor, rowLength, scatter, type Rows } from './row-packing.ts';
import type { Runner } from './runner.ts';

export interface StepArguments {
  config: ModelConfig;
  /** Holds the parent's weights and moments, and afterwards the new ones. */
  adam: Adam;
  /** Updates that the parent has behind it. */
  updates: number;
  batch: TrainBatch;
  settings: TrainSettings;
  reference: Tensor[] | undefined;
  /** Counts micro-batches, with and without backward pass. */
  onProgress: ((done: number, total: number) => void) | undefined;
}

/** Sums over the masked tokens of one update. */
interface UpdateSums {
  loss: number;
  entropy: number;
  kl: number;
  clipped: number;
  tokens: number;
}

/**
 * All updates of a step on arguments that were checked. Throws GradusError('learner', 'diverged'), after which
 * `adam` holds nothing of use.
 */
export async function trainStep(
  backend: Backend,
  runner: Runner,
  step: StepArguments,
): Promise<TrainMetrics> {
  const { config, adam, batch, settings, reference } = step;
  const { objective, optimizer } = settings;
  const started = performance.now();
  const length = rowLength(batch.offsets);
  const everything = Array.from({ length: batch.offsets.length - 1 }, (_, i) => i);
  const pack = (sequences: number[]) =>
    packRows(batch.tokens, batch.offsets, sequences, length, positionsFor(config.vocabSize));
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
  const advance = async () => {
    step.onProgress?.(++done, total);
    // Kernels are synchronous: this is where progress gets out.
    await nextTurn();
  };

  const logprobsUnder = async (weights: Tensor[]): Promise<Float32Array> => {
    const temperature = objective.kind === 'grpo' ? objective.temperature : 1;
    const program = logprobProgram(backend, config, temperature);
    const logprobs = new Float32Array(batch.tokens.length);
    for (const rows of all) {
      const inputs = [...weights, ...modelInputs(backend, rows)];
      const run = await runner.prepare(program, inputs);
      const outputs = backend.tf.tidy(() => run(inputs));
      scatter(outputs[0]!.dataSync() as Float32Array, rows, logprobs);
      dispose([...inputs.slice(weights.length), ...outputs]);
      await advance();
    }
    return logprobs;
  };

  const perToken: Partial<Record<TokenInput, Float32Array>> = {
    advantages: batch.advantages,
    rollout: batch.rolloutLogprobs,
  };
  if (wanted.includes('reference')) perToken.reference = await logprobsUnder(reference!);
  if (wanted.includes('old')) perToken.old = await logprobsUnder(adam.weights());
  // With a single update its own forward pass runs under the parent's weights.
  const parentLogprobs = perToken.old ?? new Float32Array(batch.tokens.length);

  const program = trainingProgram(backend, config, objective, single);
  const metrics = { loss: 0, gradientNorm: 0, entropy: 0, kl: 0, clipFraction: 0 };
  let tokens = 0;
  for (const [index, { sequences, rows: microBatches }] of updates.entries()) {
    const aggregation = objective.kind === 'grpo' ? objective.aggregation : 'token';
    const weights = lossWeights(batch, sequences, aggregation);
    if (objective.kind === 'supervised') {
      batch.advantages.forEach((advantage, i) => (weights[i]! *= advantage));
    }
    const sums: UpdateSums = { loss: 0, entropy: 0, kl: 0, clipped: 0, tokens: 0 };
    let gradients: Tensor[] | undefined;
    for (const rows of microBatches) {
      const parameters = adam.weights();
      const own = [
        ...modelInputs(backend, rows),
        ...[batch.mask, weights, ...wanted.map((name) => perToken[name]!)].map((values) =>
          backend.tf.tensor1d(gather(values, rows)),
        ),
      ];
      const inputs = [...parameters, ...own];
      const run = await runner.prepare(program, inputs);
      const outputs = backend.tf.tidy(() => run(inputs));
      const [loss, logprobs, ...rest] = outputs as [Tensor, Tensor, ...Tensor[]];
      addUp(sums, rows, batch.mask, [loss, ...rest.slice(0, 3)]);
      if (single) scatter(logprobs.dataSync() as Float32Array, rows, parentLogprobs);
      gradients = accumulate(backend, gradients, rest.slice(3));
      dispose([...own, ...outputs.slice(0, 5)]);
      await advance();
    }
    for (const sequence of sequences) tokens += batch.offsets[sequence + 1]! - batch.offsets[sequence]!;
    if (!gradients) continue;

    const norm = gradientNorm(backend, gradients);
    if (!Number.isFinite(sums.loss) || !Number.isFinite(norm)) {
      dispose(gradients);
      throw new GradusError(
        'learner',
        'diverged',
        `update ${step.updates + index + 1}: loss ${sums.loss}, gradient norm ${norm}. ` +
          'Lower the learning rate, clip the gradient norm, or look at the advantages of this batch.',
      );
    }
    gradients = clipGradients(backend, gradients, norm, optimizer.maxGradientNorm);
    const before = step.updates + index;
    adam.update(gradients, rateAt(optimizer, before), before + 1, optimizer);
    dispose(gradients);

    const counted = Math.max(1, sums.tokens);
    metrics.loss += sums.loss / updates.length;
    metrics.gradientNorm += norm / updates.length;
    metrics.entropy += sums.entropy / counted / updates.length;
    metrics.kl += sums.kl / counted / updates.length;
    metrics.clipFraction += sums.clipped / counted / updates.length;
  }
  return {
    ...metrics,
    ...(objective.kind === 'grpo'
      ? logprobGap(batch, parentLogprobs)
      : { logprobGapMax: 0, logprobGapMean: 0 }),
    updates: updates.length,
    tokens,
    seconds: (performance.now() - started) / 1000,
  };
}

function modelInputs({ tf }: Backend, rows: Rows): Tensor[] {
  return [
    tf.tensor1d(rows.tokens, 'int32'),
    tf.tensor1d(rows.targets, 'int32'),
    tf.tensor2d(rows.segments, [rows.rows, rows.length], 'int32'),
  ];
}

function addUp(sums: UpdateSums, rows: Rows, mask: Float32Array, outputs: Tensor[]): void {
  const [loss, entropy, kl, clipped] = outputs.map((tensor) => tensor.dataSync() as Float32Array);
  sums.loss += loss![0]!;
  rows.sources.forEach((source, position) => {
    if (source < 0 || mask[source] !== 1) return;
    sums.entropy += entropy![position]!;
    sums.kl += kl![position]!;
    sums.clipped += clipped![position]!;
    sums.tokens++;
  });
}

function accumulate({ tf }: Backend, sum: Tensor[] | undefined, gradients: Tensor[]): Tensor[] {
  if (!sum) return gradients;
  return sum.map((total, i) => {
    const next = tf.add(total, gradients[i]!);
    dispose([total, gradients[i]!]);
    return next;
  });
}

/** How far the learner's log-probs are from those that the rollout engine reported, over masked tokens. */
function logprobGap(batch: TrainBatch, logprobs: Float32Array) {
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
  return { logprobGapMax: max, logprobGapMean: sum / count };
}

function dispose(tensors: Tensor[]): void {
  for (const tensor of tensors) tensor.dispose();
}
