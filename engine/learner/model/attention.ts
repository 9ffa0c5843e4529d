import type { Rank, Tensor2D, Tensor3D, Tensor4D } from '@tensorflow/tfjs';
import type { Tf } from '../tensorflow/backend.ts';
import { customGradient } from '../tensorflow/custom-gradient.ts';
import { causalBlocks } from './causal-blocks.ts';

/** What is added to a score that must not be seen: the softmax makes exactly zero of it. */
const HIDDEN = -1e9;

/**
 * [B, 1, T, T]: 0 where position i may look at j, −1e9 elsewhere. A position sees itself and what came before in
 * its own segment, so that several sequences share a row without seeing each other (`segments` [B, T], int32).
 */
export function attentionMask(tf: Tf, segments: Tensor2D): Tensor4D {
  const [rows, length] = segments.shape;
  const causal = new Float32Array(length * length);
  for (let i = 0; i < length; i++) causal.fill(1, i * length, i * length + i + 1);
  const same = tf.equal(
    tf.reshape(segments, [rows, 1, length, 1]),
    tf.reshape(segments, [rows, 1, 1, length]),
  );
  const seen = tf.mul(tf.cast(same, 'float32'), tf.tensor4d(causal, [1, 1, length, length]));
  return tf.mul(tf.sub(1, seen), HIDDEN);
}

/**
 * softmax(q kᵀ + mask) v (Vaswani et al. 2017, eq. 1, whose 1/√D is in q already) with H = G · K query heads over K key-value heads
 * (Ainslie et al. 2023). q [B, H, T, D], k and v [B, K, T, D], mask [B, 1, T, T] as `attentionMask` gives it, result
 * [B, H, T, D].
 */
export function attention(tf: Tf, q: Tensor4D, k: Tensor4D, v: Tensor4D, mask: Tensor4D): Tensor4D {
  const [rows, heads, length, headSize] = q.shape;
  const blocks = causalBlocks(tf, { rows, heads, keyHeads: k.shape[1], length, headSize });
  const matMul = (a: Tensor3D, b: Tensor3D, transposeA: boolean, transposeB: boolean): Tensor3D =>
    tf.matMul(a, b, transposeA, transposeB);

  return customGradient<[Tensor4D, Tensor4D, Tensor4D], Tensor3D[], Tensor4D>(
    tf,
    (...whole) => {
      const q = blocks.queries(whole[0]);
      const k = blocks.keys(whole[1]);
      const v = blocks.keys(whole[2]);
      const p = blocks.masks(mask).map((hidden, i) => {
        const [, , queries, keys] = hidden.shape;
        const products = matMul(q[i]!, k[i]!, false, true);
        const scores = tf.add(tf.reshape(products, [rows, heads, queries, keys]), hidden);
        return tf.reshape<Rank.R3>(tf.softmax(scores), products.shape);
      });
      const y = p.map((probabilities, i) => matMul(probabilities, v[i]!, false, false));
      return { value: blocks.joined(y), saved: [...q, ...k, ...v, ...p, ...y] };
    },
    (whole, ...saved) => {
      const dy = blocks.queries(whole);
      const [q, k, v, p, y] = [0, 1, 2, 3, 4].map((i) => saved.slice(i * dy.length, (i + 1) * dy.length)) as [
        Tensor3D[],
        Tensor3D[],
        Tensor3D[],
        Tensor3D[],
        Tensor3D[],
      ];
      const dv = dy.map((dy, i) => matMul(p[i]!, dy, true, false));
      const dScores = dy.map((dy, i) => {
        // Σⱼ p dp is dy · y (Dao et al. 2022, "FlashAttention", appendix B.2): a sum over D instead of over T.
        const along = tf.sum<Tensor3D>(tf.mul(dy, y[i]!), -1, true);
        return tf.mul<Tensor3D>(p[i]!, tf.sub(matMul(dy, v[i]!, false, true), along));
      });
      const dq = dScores.map((scores, i) => matMul(scores, k[i]!, false, false));
      const dk = dScores.map((scores, i) => matMul(scores, q[i]!, true, false));
      return [blocks.joined(dq), blocks.added(dk), blocks.added(dv)];
    },
  )(q, k, v);
}
