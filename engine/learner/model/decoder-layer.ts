import type { Rank, Tensor, Tensor1D, Tensor2D, Tensor4D } from '@tensorflow/tfjs';
import { adapterName } from '../../lora/adapter-shapes.ts';
import type { LinearWithBias, ModelConfig } from '../../../core/model/config.ts';
import type { TensorflowBackend } from '../tensorflow/backend.ts';
import { attention } from './attention.ts';
import { addBias, linear } from './linear.ts';
import { rmsNorm } from './rms-norm.ts';
import { rope } from './rope.ts';
import { rowsAt } from './rows-at.ts';
import { swiglu } from './swiglu.ts';

/** Tokens [N], mask [B, 1, T, T], RoPE's tables [1, T, 1, D] for keys, and for queries times 1/√D. */
export type OwnInputs = [
  tokens: Tensor1D,
  mask: Tensor4D,
  keyCos: Tensor4D,
  keySin: Tensor4D,
  queryCos: Tensor4D,
  querySin: Tensor4D,
];

/** What every layer reads; where places share positions, the position of each place [B · T] and a place of each position [N], too. */
export type LayerInputs = OwnInputs | [...OwnInputs, positionOf: Tensor1D, placeOf: Tensor1D];

/**
 * One layer of the decoder on x [N, d]. `parameters` hold its weights by their Hugging Face names and LoRA's matrices
 * by PEFT's; the product of the latter counts for `loraScale`, and where there is one the weights are frozen.
 */
export function decoderLayer(
  backend: TensorflowBackend,
  config: ModelConfig,
  layer: number,
  parameters: ReadonlyMap<string, Tensor>,
  loraScale: number | undefined,
  [, mask, keyCos, keySin, queryCos, querySin, positionOf, placeOf]: LayerInputs,
  x: Tensor2D,
): Tensor2D {
  const { tf } = backend;
  const [rows, , , length] = mask.shape;
  const { attentionHeads, keyValueHeads, headSize, rmsNormEpsilon } = config;
  const gain = (name: string) => parameters.get(`model.layers.${layer}.${name}.weight`) as Tensor1D;
  const projected = (x: Tensor2D, name: string, kind: LinearWithBias): Tensor2D => {
    const module = `model.layers.${layer}.${name}`;
    const weight = parameters.get(`${module}.weight`) as Tensor2D;
    const product = linear(backend, x, weight, loraScale !== undefined);
    const y = config.biases?.includes(kind)
      ? addBias(tf, product, parameters.get(`${module}.bias`) as Tensor1D)
      : product;
    const a = parameters.get(adapterName(module, 'A')) as Tensor2D | undefined;
    if (!a || loraScale === undefined) return y;
    const b = parameters.get(adapterName(module, 'B')) as Tensor2D;
    return tf.add(y, tf.mul(linear(backend, linear(backend, x, a), b), loraScale));
  };
  const atPlaces = (x: Tensor2D): Tensor2D => (positionOf ? rowsAt(backend, x, positionOf) : x);
  const atPositions = (x: Tensor2D): Tensor2D => (placeOf ? rowsAt(backend, x, placeOf) : x);
  const inHeads = (x: Tensor2D, count: number) =>
    tf.reshape<Rank.R4>(atPlaces(x), [rows, length, count, headSize]);
  const normedHeads = (x: Tensor2D, name: 'q' | 'k', count: number) => {
    if (!config.queryKeyNorm) return inHeads(x, count);
    const perHead = tf.reshape<Rank.R2>(x, [x.shape[0] * count, headSize]);
    const normed: Tensor2D = rmsNorm(tf, perHead, gain(`self_attn.${name}_norm`), rmsNormEpsilon);
    return inHeads(tf.reshape<Rank.R2>(normed, x.shape), count);
  };
  const headsFirst = (x: Tensor4D) => tf.transpose(x, [0, 2, 1, 3]);
  const keyTables = { cos: keyCos, sin: keySin };
  const queryTables = { cos: queryCos, sin: querySin };

  const h = rmsNorm(tf, x, gain('input_layernorm'), rmsNormEpsilon);
  const qProjected = projected(h, 'self_attn.q_proj', 'qkv');
  const kProjected = projected(h, 'self_attn.k_proj', 'qkv');
  const q = headsFirst(rope(tf, normedHeads(qProjected, 'q', attentionHeads), queryTables));
  const k = headsFirst(rope(tf, normedHeads(kProjected, 'k', keyValueHeads), keyTables));
  const v = headsFirst(inHeads(projected(h, 'self_attn.v_proj', 'qkv'), keyValueHeads));
  const mixed = tf.reshape<Rank.R2>(headsFirst(attention(tf, q, k, v, mask)), [
    rows * length,
    attentionHeads * headSize,
  ]);
  const attended = tf.add<Tensor2D>(x, projected(atPositions(mixed), 'self_attn.o_proj', 'output'));

  const g = rmsNorm(tf, attended, gain('post_attention_layernorm'), rmsNormEpsilon);
  const inner = swiglu(tf, projected(g, 'mlp.gate_proj', 'mlp'), projected(g, 'mlp.up_proj', 'mlp'));
  return tf.add(attended, projected(inner, 'mlp.down_proj', 'mlp'));
}
