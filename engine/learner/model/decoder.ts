import type { Rank, Tensor, Tensor1D, Tensor2D, Tensor4D } from '@tensorflow/tfjs';
import type { ModelConfig } from '../../model-config.ts';
import type { Backend } from '../backend.ts';
import { attention, attentionMask } from './attention.ts';
import { embed } from './embedding.ts';
import { linear } from './linear.ts';
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
  const tables = ropeTables(tf, length, headSize, config.ropeTheta);
  const matrix = (name: string) => weight(name) as Tensor2D;
  const gain = (name: string) => weight(name) as Tensor1D;

  let x = embed(backend, matrix('model.embed_tokens.weight'), tokens);
  for (let layer = 0; layer < config.layers; layer++) {
    const at = (name: string) => `model.layers.${layer}.${name}.weight`;
    const heads = (x: Tensor2D, name: string, count: number) =>
      tf.reshape<Rank.R4>(linear(backend, x, matrix(at(`self_attn.${name}_proj`))), [
        rows,
        length,
        count,
        headSize,
      ]);
    const headsFirst = (x: Tensor4D) => tf.transpose(x, [0, 2, 1, 3]);

    const h = rmsNorm(tf, x, gain(at('input_layernorm')), rmsNormEpsilon);
    const q = headsFirst(rope(tf, heads(h, 'q', attentionHeads), tables));
    const k = headsFirst(rope(tf, heads(h, 'k', keyValueHeads), tables));
    const v = headsFirst(heads(h, 'v', keyValueHeads));
    const mixed = tf.reshape<Rank.R2>(headsFirst(attention(tf, q, k, v, mask)), [
      rows * length,
      attentionHeads * headSize,
    ]);
    x = tf.add(x, linear(backend, mixed, matrix(at('self_attn.o_proj'))));

    const g = rmsNorm(tf, x, gain(at('post_attention_layernorm')), rmsNormEpsilon);
    const inner = swiglu(
      tf,
      linear(backend, g, matrix(at('mlp.gate_proj'))),
      linear(backend, g, matrix(at('mlp.up_proj'))),
    );
    x = tf.add(x, linear(backend, inner, matrix(at('mlp.down_proj'))));
  }
  // The head is linear, so dividing the last gain [d] divides the logits [N, V].
  const lastGain = gain('model.norm.weight');
  const scaled = temperature === 1 ? lastGain : tf.div<Tensor1D>(lastGain, temperature);
  const last = rmsNorm(tf, x, scaled, rmsNormEpsilon);
  return linear(backend, last, matrix(config.tieEmbeddings ? 'model.embed_tokens.weight' : 'lm_head.weight'));
}
