import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Tensor } from '@tensorflow/tfjs';
import type { Backend } from './backend.ts';
import type { KeptSets } from './contract.ts';
import type { Program } from './programs.ts';
import { gather, gatherKept, scatter, type Rows } from './row-packing.ts';
import type { Runner } from './runner.ts';

/** Programs over the micro-batches of a packed batch, one after another. */
export interface MicroBatches {
  /** Log-probs [total] of every packed token by a `logprobProgram`; 0 elsewhere. */
  logprobs(program: Program, weights: Tensor[], packed: Rows[]): Promise<Float32Array>;
  /** Loss and gradient of one minibatch by a `trainingProgram` that reads `mask` and `perToken`, [total] each. */
  gradient(
    program: Program,
    weights: Tensor[],
    packed: Rows[],
    mask: Float32Array,
    perToken: Float32Array[],
  ): Promise<MinibatchGradient>;
}

export interface MinibatchGradient {
  /** In the order of the weights; the caller disposes them. Empty when nothing was packed. */
  gradients: Tensor[];
  loss: number;
  /** Sums over masked tokens, and their number. */
  entropy: number;
  kl: number;
  clipped: number;
  tokens: number;
  /** Log-probs [total] under the weights that were given. */
  logprobs: Float32Array;
}

/**
 * `kept`, with the size of its largest set, goes to all programs. `advance` hears of every micro-batch. Between  two of them the event loop turns, for kernels are synchronous.
 */
export function createMicroBatches(
  backend: Backend,
  runner: Runner,
  total: number,
  kept: { sets: KeptSets; most: number } | undefined,
  advance: () => void,
): MicroBatches {
  const { tf } = backend;

  async function* run(program: Program, weights: Tensor[], packed: Rows[], perToken: Float32Array[]) {
    for (const rows of packed) {
      const own = [
        tf.tensor1d(rows.tokens, 'int32'),
        tf.tensor1d(rows.targets, 'int32'),
        tf.tensor2d(rows.segments, [rows.rows, rows.length], 'int32'),
        ...(kept
          ? [tf.tensor2d(gatherKept(kept.sets, rows, kept.most), [rows.sources.length, kept.most], 'int32')]
          : []),
        ...perToken.map((values) => tf.tensor1d(gather(values, rows))),
      ];
      const inputs = [...weights, ...own];
      const compute = await runner.prepare(program, inputs);
      const outputs = tf.tidy(() => compute(inputs));
      dispose(own);
      yield { rows, outputs };
      advance();
      await nextTurn();
    }
  }

  return {
    logprobs: async (program, weights, packed) => {
      const logprobs = new Float32Array(total);
      for await (const { rows, outputs } of run(program, weights, packed, [])) {
        scatter(values(outputs[0]!), rows, logprobs);
        dispose(outputs);
      }
      return logprobs;
    },
    gradient: async (program, weights, packed, mask, perToken) => {
      const sums = { loss: 0, entropy: 0, kl: 0, clipped: 0, tokens: 0 };
      const logprobs = new Float32Array(total);
      let gradients: Tensor[] = [];
      for await (const { rows, outputs } of run(program, weights, packed, [mask, ...perToken])) {
        const metrics = outputs.slice(0, 5);
        const [loss, here, entropy, kl, clipped] = metrics.map(values);
        sums.loss += loss![0]!;
        scatter(here!, rows, logprobs);
        rows.sources.forEach((source, position) => {
          if (source < 0 || mask[source] !== 1) return;
          sums.entropy += entropy![position]!;
          sums.kl += kl![position]!;
          sums.clipped += clipped![position]!;
          sums.tokens++;
        });
        dispose(metrics);
        gradients = accumulate(gradients, outputs.slice(5));
      }
      return { gradients, logprobs, ...sums };
    },
  };

  function accumulate(sums: Tensor[], gradients: Tensor[]): Tensor[] {
    if (sums.length === 0) return gradients;
    const next = sums.map((sum, i) => tf.add(sum, gradients[i]!));
    dispose([...sums, ...gradients]);
    return next;
  }
}

const values = (tensor: Tensor) => tensor.dataSync() as Float32Array;

export function dispose(tensors: Tensor[]): void {
  for (const tensor of tensors) tensor.dispose();
}
