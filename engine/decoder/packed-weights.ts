import type { RolloutDtype } from '../../core/schema/policy.ts';
import { weightShapes, type ModelConfig, type Weights } from '../../core/model/config.ts';
import type { InPieces } from '../in-pieces.ts';
import { adaptedModules } from '../lora/adapter-shapes.ts';
import type { LoraAdapter } from '../lora/adapter.ts';
import { addModuleInPieces } from '../lora/merge-adapter.ts';
import { packedMatrix, storedBytes } from '../onnx/packed-matrix.ts';
import type { PackedDtype } from '../onnx/packed-matrix.ts';
import type { NativeAddon } from './native/addon.ts';

/** Weights whose matrices are rounded, in the layout of the native decoder's kernels: `packedLayout` says where each is. */
export interface PackedWeights {
  dtype: PackedDtype;
  data: Uint8Array;
}

/** What a backend computes with: all tensors of `weightShapes(config)` end to end in float32, or packed ones. */
export type DecoderWeights = Float32Array | PackedWeights;

export const dtypeOf = (weights: DecoderWeights): RolloutDtype =>
  'dtype' in weights ? weights.dtype : 'float32';

/** Rows that are packed in one piece of work have about so many weights. */
const PIECE = 2 ** 19;

interface PackedTensor {
  /** What lies in it, row after row: the three projections into attention are one matrix. */
  names: string[];
  shape: [rows: number, ...columns: number[]];
  start: number;
}

/** Where each tensor lies, in the order of `weightShapes`, which is that of the decoder's graph. */
export function packedLayout(
  config: ModelConfig,
  dtype: PackedDtype,
): { tensors: PackedTensor[]; bytes: number } {
  const tensors: PackedTensor[] = [];
  let joined = '';
  for (const [name, [rows, ...columns]] of weightShapes(config)) {
    const whole = name.replace(/\.[qkv]_proj\./, '.qkv_proj.');
    const last = tensors.at(-1);
    if (last !== undefined && whole === joined) {
      last.names.push(name);
      last.shape[0] += rows!;
    } else {
      tensors.push({ names: [name], shape: [rows!, ...columns], start: 0 });
    }
    joined = whole;
  }
  let bytes = 0;
  for (const tensor of tensors) {
    tensor.start = bytes;
    bytes += storedBytes(tensor.shape, dtype);
  }
  return { tensors, bytes };
}

/**
 * Rounds weights, and an adapter merged into them, into `data` of the size of their layout. Of an adapted matrix alone there is
 * a copy in float32, one at a time.
 */
export function* packInPieces(
  { pack }: Pick<NativeAddon, 'pack'>,
  config: ModelConfig,
  weights: Weights,
  { dtype, data }: PackedWeights,
  adapter?: LoraAdapter,
): InPieces<void> {
  const adapted = new Map(
    adapter ? adaptedModules(config, adapter.lora).map((one) => [`${one.module}.weight`, one]) : [],
  );
  for (const { names, shape, start } of packedLayout(config, dtype).tensors) {
    const target = data.subarray(start, start + storedBytes(shape, dtype));
    let row = 0;
    for (const name of names) {
      let { data: given } = weights.get(name)!;
      const module = adapted.get(name);
      if (adapter && module) {
        given = given.slice();
        yield* addModuleInPieces(given, module, adapter);
      }
      const [, columns = 1] = shape;
      if (shape.length === 1) new Float32Array(target.buffer, target.byteOffset, shape[0]).set(given, row);
      else {
        const piece = Math.max(1, Math.floor(PIECE / columns)) * columns;
        for (let at = 0; at < given.length; at += piece) {
          yield;
          pack(packedMatrix(dtype, shape), target, row + at / columns, given.subarray(at, at + piece));
        }
      }
      row += given.length / columns;
    }
  }
}
