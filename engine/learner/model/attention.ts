import type { Rank, Tensor2D, Tensor3D, Tensor4D } from '@tensorflow/tfjs';
import type { Tf } from '../backend.ts';
import { customGradient } from '../custom-gradient.ts';

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
 * (Ainslie et al. 2023). q [B, H, T, D], k and v [B, K, T, D], result [B, H, T, D]. The G query heads that share a
 * key head are laid one after the other, so that keys and values are never repeated.
 */
export function attention(tf: Tf, q: Tensor4D, k: Tensor4D, v: Tensor4D, mask: Tensor4D): Tensor4D {
  const [rows, heads, length, headSize] = q.shape;
  const keyHeads = k.shape[1];
  const groups = heads / keyHeads;
  const merged = (x: Tensor4D) => tf.reshape<Rank.R3>(x, [rows * keyHeads, groups * length, headSize]);
  const shared = (x: Tensor4D) => tf.reshape<Rank.R3>(x, [rows * keyHeads, length, headSize]);
  const matMul = (a: Tensor3D, b: Tensor3D, transposeA: boolean, transposeB: boolean): Tensor3D =>
    tf.matMul(a, b, transposeA, transposeB);

  return customGradient<
    [Tensor4D, Tensor4D, Tensor4D],
    [Tensor3D, Tensor3D, Tensor3D, Tensor3D, Tensor3D],
    Tensor4D
  >(
    tf,
    (q4, k4, v4) => {
      const q = merged(q4);
      const k = shared(k4);
      const v = shared(v4);
      const scores = tf.add(tf.reshape(matMul(q, k, false, true), [rows, heads, length, length]), mask);
      const p = tf.reshape<Rank.R3>(tf.softmax(scores), [rows * keyHeads, groups * length, length]);
      const y = matMul(p, v, false, false);
      return { value: tf.reshape(y, [rows, heads, length, headSize]), saved: [q, k, v, p, y] };
    },
    (dy4, q, k, v, p, y) => {
      const dy = merged(dy4);
      const dv = matMul(p, dy, true, false);
      // Σⱼ p dp is dy · y (Dao et al. 2022, "FlashAttention", appendix B.2): a sum over D instead of over T.
      const along = tf.sum<Tensor3D>(tf.mul(dy, y), -1, true);
      const dScores = tf.mul<Tensor3D>(p, tf.sub(matMul(dy, v, false, true), along));
      const dq = matMul(dScores, k, false, false);
      const dk = matMul(dScores, q, true, false);
      return [
        tf.reshape(dq, [rows, heads, length, headSize]),
        tf.reshape(dk, [rows, keyHeads, length, headSize]),
        tf.reshape(dv, [rows, keyHeads, length, headSize]),
      ];
    },
  )(q, k, v);
}
