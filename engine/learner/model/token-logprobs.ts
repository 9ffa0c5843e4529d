import type { Rank, Tensor, Tensor1D, Tensor2D } from '@tensorflow/tfjs';
import type { TensorflowBackend } from '../tensorflow/backend.ts';
import { MASKED } from '../../token-mask.ts';
import { customGradient } from '../tensorflow/custom-gradient.ts';
import { product } from './linear.ts';
import { oneHot } from './one-hot.ts';

interface HeadOptions {
  mask?: Float32Array | undefined;
  kept?: Tensor2D | undefined;
  /** The head has no gradient, and what that is computed from is not kept. */
  frozen?: boolean;
  /** Gradients flow through the entropy, too, at the cost of one more product with the head. */
  entropyGradient?: boolean;
}

/**
 * Log-probabilities [N] of `targets` [N] (int32) under softmax(hidden headᵀ), hidden [N, d] and head [V, d], and the
 * entropy [N] of each distribution, in nats. Without `entropyGradient` the entropy is a metric, kept by `tf.keep`.
 *
 * Head and softmax are one function, so that what is scaled, multiplied and summed for the gradient is [N, d] instead
 * of [N, V]. A token that is masked, or not kept, has neither probability nor gradient: `mask` [V] is added to the logits
 * (see `tokenMask`), and of each row only the ids `kept` [N, K] count, all of them where the first one is negative.
 */
export function tokenLogprobs(
  backend: TensorflowBackend,
  hidden: Tensor2D,
  head: Tensor2D,
  targets: Tensor1D,
  { mask, kept, frozen = false, entropyGradient = false }: HeadOptions = {},
): { logprobs: Tensor1D; entropy: Tensor1D } {
  const { tf } = backend;
  const logitsOf = (hidden: Tensor2D, head: Tensor2D): Tensor2D => {
    // Log-probs are differences of logits: rounded to bfloat16 these would be off by some hundredths (ADR 0013).
    const unmasked = product(backend, hidden, head, false, true, true);
    const masked = mask === undefined ? unmasked : tf.add<Tensor2D>(unmasked, tf.tensor1d(mask));
    return kept === undefined ? masked : tf.add<Tensor2D>(masked, cutMask(backend, kept, head.shape[0]));
  };
  if (entropyGradient) return withEntropyGradient(backend, logitsOf, hidden, head, targets, frozen);
  let entropy: Tensor1D | undefined;
  const forward = (hidden: Tensor2D, head: Tensor2D) => {
    const { loss, backprop } = crossEntropy(backend, logitsOf(hidden, head), targets);
    // With q = softmax − onehot and L = −log p(target): H = Σ −p log p = L − Σ q · logits, and logits = hidden headᵀ.
    const pull = product(backend, backprop, head, false, false);
    entropy = tf.keep(tf.sub(loss, tf.sum(tf.mul(hidden, pull), -1)));
    return { value: tf.neg<Tensor1D>(loss), backprop, pull };
  };
  const scaleOf = (dy: Tensor1D) => tf.expandDims<Tensor2D>(tf.neg(dy), 1);
  const logprobs = frozen
    ? customGradient<[Tensor2D], [Tensor2D], Tensor1D>(
        tf,
        (hidden) => {
          const { value, pull } = forward(hidden, head);
          return { value, saved: [pull] };
        },
        (dy, pull) => [tf.mul(pull, scaleOf(dy))],
      )(hidden)
    : customGradient<[Tensor2D, Tensor2D], [Tensor2D, Tensor2D, Tensor2D], Tensor1D>(
        tf,
        (hidden, head) => {
          const { value, backprop, pull } = forward(hidden, head);
          return { value, saved: [hidden, backprop, pull] };
        },
        (dy, hidden, backprop, pull) => {
          const scale = scaleOf(dy);
          return [tf.mul(pull, scale), product(backend, backprop, tf.mul(hidden, scale), true, false)];
        },
      )(hidden, head);
  return { logprobs, entropy: entropy! };
}

/** Below any probability that float32 can tell from 0: its logarithm is a number, and counts for nothing beside p = 0. */
const LEAST = 1e-37;

/**
 * The same with a gradient through both, by the logits z: dlog p(target)/dz = onehot − p and dH/dz = −p (log p + H). What is
 * kept for it is one [N, V], as without.
 */
function withEntropyGradient(
  backend: TensorflowBackend,
  logitsOf: (hidden: Tensor2D, head: Tensor2D) => Tensor2D,
  hidden: Tensor2D,
  head: Tensor2D,
  targets: Tensor1D,
  frozen: boolean,
): { logprobs: Tensor1D; entropy: Tensor1D } {
  const { tf } = backend;
  const forward = (hidden: Tensor2D, head: Tensor2D) => {
    const logits = logitsOf(hidden, head);
    const { loss, backprop } = crossEntropy(backend, logits, targets);
    // As above, with logits in place of hidden headᵀ: where p is 0 a masked logit is finite.
    const entropy = tf.sub<Tensor1D>(loss, tf.sum(tf.mul(backprop, logits), -1));
    return { value: tf.stack([tf.neg(loss), entropy]) as Tensor2D, backprop, entropy };
  };
  const byLogits = (dy: Tensor2D, backprop: Tensor2D, entropy: Tensor1D, targets: Tensor1D): Tensor2D => {
    const [ofLogprob, ofEntropy] = tf.unstack(tf.expandDims(dy, 2)) as [Tensor2D, Tensor2D];
    const p = tf.maximum(tf.add(backprop, oneHot(tf, targets, backprop.shape[1])), 0);
    const surprise = tf.add(tf.log(tf.maximum(p, LEAST)), tf.expandDims(entropy, 1));
    return tf.neg(tf.add(tf.mul(ofLogprob, backprop), tf.mul(ofEntropy, tf.mul(p, surprise))));
  };
  const both = frozen
    ? customGradient<[Tensor2D], [Tensor2D, Tensor1D, Tensor1D], Tensor2D>(
        tf,
        (hidden) => {
          const { value, backprop, entropy } = forward(hidden, head);
          return { value, saved: [backprop, entropy, targets] };
        },
        (dy, ...saved) => [product(backend, byLogits(dy, ...saved), head, false, false)],
      )(hidden)
    : customGradient<[Tensor2D, Tensor2D], [Tensor2D, Tensor2D, Tensor2D, Tensor1D, Tensor1D], Tensor2D>(
        tf,
        (hidden, head) => {
          const { value, backprop, entropy } = forward(hidden, head);
          return { value, saved: [hidden, head, backprop, entropy, targets] };
        },
        (dy, hidden, head, ...saved) => {
          const pull = byLogits(dy, ...saved);
          return [product(backend, pull, head, false, false), product(backend, pull, hidden, true, false)];
        },
      )(hidden, head);
  const [logprobs, entropy] = tf.unstack(both) as [Tensor1D, Tensor1D];
  return { logprobs, entropy };
}

/**
 * [N, V], 0 where an id is kept and `MASKED` elsewhere. Ids may repeat: what is summed are whole numbers, which have
 * the same sum in any order.
 */
function cutMask({ tf }: TensorflowBackend, kept: Tensor2D, vocabSize: number): Tensor2D {
  const [rows, most] = kept.shape;
  const row = tf.tile(tf.reshape(tf.range(0, rows, 1, 'int32'), [rows, 1]), [1, most]);
  const id = tf.maximum(kept, tf.scalar(0, 'int32'));
  const places = tf.reshape(tf.stack([row, id], -1), [rows * most, 2]);
  const found = tf.scatterND<Rank.R2>(places, tf.ones([rows * most]), [rows, vocabSize]);
  const uncut = tf.cast(tf.less(tf.slice(kept, [0, 0], [rows, 1]), tf.scalar(0, 'int32')), 'float32');
  const counts = tf.minimum(tf.add(found, uncut), 1);
  return tf.mul(tf.sub(1, counts), MASKED);
}

/** L [N] and softmax − onehot [N, V]. On a GPU the fused kernel is not repeatable, so plain ops do it there. */
function crossEntropy(backend: TensorflowBackend, logits: Tensor2D, targets: Tensor1D) {
  const { tf, native, gpu } = backend;
  if (native && !gpu) return native.crossEntropy(logits, targets);
  const shifted = tf.sub(logits, tf.max(logits, -1, true));
  const exponentials = tf.exp(shifted);
  const total = tf.sum<Tensor>(exponentials, -1, true);
  const chosen = oneHot(tf, targets, logits.shape[1]);
  const loss = tf.sub<Tensor1D>(tf.log(tf.squeeze(total, [1])), tf.sum(tf.mul(shifted, chosen), -1));
  return { loss, backprop: tf.sub<Tensor2D>(tf.div(exponentials, total), chosen) };
}
