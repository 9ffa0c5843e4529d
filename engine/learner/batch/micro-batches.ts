import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Tensor } from '@tensorflow/tfjs';
import type { TensorflowBackend } from '../tensorflow/backend.ts';
import type { SamplingMask } from '../contract.ts';
import { rowInputs, type Program } from '../programs/program.ts';
import { gather, gatherSamplingMask, scatter, type PackedRows } from './row-packing.ts';
import type { Runner } from '../tensorflow/runner.ts';

/** Programs over the micro-batches of a packed batch, one after another. */
export interface MicroBatches {
  /** What a program says of each token [total], its one output; 0 where nothing is packed. */
  perToken(program: Program, weights: Tensor[], packed: PackedRows[]): Promise<Float32Array>;
  /**
   * Loss and gradient of one update by a program that reads `mask` and `inputs`, [total] each. After the loss it gives one
   * number for each token, then `measures` more that are summed, then the gradients.
   */
  gradient(
    program: Program,
    weights: Tensor[],
    packed: PackedRows[],
    mask: Float32Array,
    inputs: Float32Array[],
    measures: number,
  ): Promise<UpdateGradient>;
}

interface UpdateGradient {
  /** In the order of the weights; the caller disposes them. Empty when nothing was packed. */
  gradients: Tensor[];
  loss: number;
  /** Log-probs or values [total] under the weights that were given. */
  perToken: Float32Array;
  /** Of the measures over masked tokens, and the number of these. */
  sums: number[];
  tokens: number;
}

/**
 * `kept`, with the size of its largest set, goes to all programs. `advance` hears of every micro-batch. Between  two of them the event loop turns, for kernels are synchronous.
 */
export function createMicroBatches(
  backend: TensorflowBackend,
  runner: Runner,
  total: number,
  kept: { sets: SamplingMask; most: number } | undefined,
  advance: () => void,
): MicroBatches {
  const { tf } = backend;

  async function* run(program: Program, weights: Tensor[], packed: PackedRows[], perToken: Float32Array[]) {
    for (const rows of packed) {
      const own = [
        ...rowInputs(tf, rows),
        ...(kept
          ? [
              tf.tensor2d(
                gatherSamplingMask(kept.sets, rows, kept.most),
                [rows.sources.length, kept.most],
                'int32',
              ),
            ]
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
    perToken: async (program, weights, packed) => {
      const all = new Float32Array(total);
      for await (const { rows, outputs } of run(program, weights, packed, [])) {
        scatter(values(outputs[0]!), rows, all);
        dispose(outputs);
      }
      return all;
    },
    gradient: async (program, weights, packed, mask, inputs, measures) => {
      const perToken = new Float32Array(total);
      const sums = Array.from({ length: measures }, () => 0);
      let [loss, tokens] = [0, 0];
      let gradients: Tensor[] = [];
      for await (const { rows, outputs } of run(program, weights, packed, [mask, ...inputs])) {
        const told = outputs.slice(0, 2 + measures);
        const [value, here, ...measured] = told.map(values);
        loss += value![0]!;
        scatter(here!, rows, perToken);
        rows.sources.forEach((source, position) => {
          if (source < 0 || mask[source] !== 1) return;
          for (let m = 0; m < measures; m++) sums[m]! += measured[m]![position]!;
          tokens++;
        });
        dispose(told);
        gradients = accumulate(gradients, outputs.slice(2 + measures));
      }
      return { gradients, loss, perToken, sums, tokens };
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
