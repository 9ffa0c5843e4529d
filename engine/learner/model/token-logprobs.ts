import type { Tensor, Tensor1D, Tensor2D } from '@tensorflow/tfjs';
import type { Backend } from '../backend.ts';
import { customGradient } from '../custom-gradient.ts';
import { oneHot } from './one-hot.ts';

/**
 * Log-probabilities [N] of `targets` [N] (int32) under softmax(logits [N, V]), and the entropy [N] of each
 * distribution, in nats. Gradients flow through the log-probabilities only: the entropy is a metric.
 */
export function tokenLogprobs(
  backend: Backend,
  logits: Tensor2D,
  targets: Tensor1D,
): { logprobs: Tensor1D; entropy: Tensor1D } {
  const { tf } = backend;
  let entropy: Tensor1D | undefined;
  const logprobs = customGradient<[Tensor2D], [Tensor2D], Tensor1D>(
    tf,
    (logits) => {
      const { loss, backprop } = crossEntropy(backend, logits, targets);
      // With q = softmax − onehot and L = −log p(target): H = Σ −p log p = L − Σ q · logits.
      entropy = tf.keep(tf.sub(loss, tf.sum(tf.mul(backprop, logits), -1)));
      return { value: tf.neg(loss), saved: [backprop] };
    },
    (dy, backprop) => [tf.mul(backprop, tf.expandDims(tf.neg(dy), 1))],
  )(logits);
  return { logprobs, entropy: entropy! };
}

/** L [N] and softmax − onehot [N, V]. On a GPU the fused kernel is not repeatable, so plain ops do it there. */
function crossEntropy(backend: Backend, logits: Tensor2D, targets: Tensor1D) {
  const { tf, native, gpu } = backend;
  if (native && !gpu) return native.crossEntropy(logits, targets);
  const shifted = tf.sub(logits, tf.max(logits, -1, true));
  const exponentials = tf.exp(shifted);
  const total = tf.sum<Tensor>(exponentials, -1, true);
  const chosen = oneHot(tf, targets, logits.shape[1]);
  const loss = tf.sub<Tensor1D>(tf.log(tf.squeeze(total, [1])), tf.sum(tf.mul(shifted, chosen), -1));
  return { loss, backprop: tf.sub<Tensor2D>(tf.div(exponentials, total), chosen) };
}
