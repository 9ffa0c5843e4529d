import type { Rank, Tensor, Tensor1D, Tensor2D, Tensor4D } from '@tensorflow/tfjs';
import type { LinearWithBias, ModelConfig } from '../../model-config.ts';
import type { Backend } from '../backend.ts';
import { attention, attentionMask } from './attention.ts';
import { embed } from './embedding.ts';
import { addBias, linear } from './linear.ts';
import { rmsNorm } from './rms-norm.ts';
import { rope, ropeTables } from './rope.ts';
import { swiglu } from './swiglu.ts';

/**
 * Logits / temperature, [B · T, V], of `tokens` [B · T] (int32) laid out in B rows of T positions; `segments`
 * [B, T] tells the sequences of a row apart. `weight` gives a weight by its Hugging Face name.
 *
 * Positions count from the start of the row, not of the sequence: attention after RoPE depends on distances alone
 * (Su et al. 2021, eq. 16).
 */
export function decoderLogits(
  backend: Backend,
  config: ModelConfig,
  weight: (name: string) => Tensor,
  tokens: Tensor1D,
  segments: Tensor2D,
  temperature: number,
): Tensor2D {
  const { tf } = backend;
  const [rows, length] = segments.shape;
  const { attentionHeads, keyValueHeads, headSize, rmsNormEpsilon } = config;
  const mask = attentionMask(tf, segments);
  const tables = ropeTables(tf, length, config);
  const matrix = (name: string) => weight(name) as Tensor2D;
  const gain = (name: string) => weight(name) as Tensor1D;

  let x = embed(backend, matrix('model.embed_tokens.weight'), tokens);
  for (let layer = 0; layer < config.layers; layer++) {
    const at = (name: string) => `model.layers.${layer}.${name}.weight`;
    const projected = (x: Tensor2D, name: string, kind: LinearWithBias): Tensor2D => {
      const y = linear(backend, x, matrix(at(name)));
      return config.biases?.includes(kind) ? addBias(tf, y, gain(`model.layers.${layer}.${name}.bias`)) : y;
    };
    const inHeads = (x: Tensor2D, count: number) => tf.reshape<Rank.R4>(x, [rows, length, count, headSize]);
    const normedHeads = (x: Tensor2D, name: 'q' | 'k', count: number) => {
      if (!config.queryKeyNorm) return inHeads(x, count);
      const perHead = tf.reshape<Rank.R2>(x, [rows * length * count, headSize]);
      const normed: Tensor2D = rmsNorm(tf, perHead, gain(at(`self_attn.${name}_norm`)), rmsNormEpsilon);
      return inHeads(normed, count);
    };
    const headsFirst = (x: Tensor4D) => tf.transpose(x, [0, 2, 1, 3]);

    const h = rmsNorm(tf, x, gain(at('input_layernorm')), rmsNormEpsilon);
    const qProjected = projected(h, 'self_attn.q_proj', 'qkv');
    const kProjected = projected(h, 'self_attn.k_proj', 'qkv');
    const q = headsFirst(rope(tf, normedHeads(qProjected, 'q', attentionHeads), tables));
    const k = headsFirst(rope(tf, normedHeads(kProjected, 'k', keyValueHeads), tables));
    const v = headsFirst(inHeads(projected(h, 'self_attn.v_proj', 'qkv'), keyValueHeads));
    const mixed = tf.reshape<Rank.R2>(headsFirst(attention(tf, q, k, v, mask)), [
      rows * length,
      attentionHeads * headSize,
    ]);
    x = tf.add(x, projected(mixed, 'self_attn.o_proj', 'output'));

    const g = rmsNorm(tf, x, gain(at('post_attention_layernorm')), rmsNormEpsilon);
    const inner = swiglu(tf, projected(g, 'mlp.gate_proj', 'mlp'), projected(g, 'mlp.up_proj', 'mlp'));
    x = tf.add(x, projected(inner, 'mlp.down_proj', 'mlp'));
  }
  // The head is linear, so dividing the last gain [d] divides the logits [N, V].
  const lastGain = gain('model.norm.weight');
  const scaled = temperature === 1 ? lastGain : tf.div<Tensor1D>(lastGain, temperature);
  const last = rmsNorm(tf, x, scaled, rmsNormEpsilon);
  return linear(backend, last, matrix(config.tieEmbeddings ? 'model.embed_tokens.weight' : 'lm_head.weight'));
}
