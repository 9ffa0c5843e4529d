import type { Tensor1D, Tensor2D } from '@tensorflow/tfjs';
import type { Backend, Tf } from '../backend.ts';
import { customGradient } from '../custom-gradient.ts';

/** x [N, in] by a weight [out, in]: y = x Wᵀ, [N, out]. An `exact` y is float32 throughout whatever the precision. */
export function linear(backend: Backend, x: Tensor2D, weight: Tensor2D, exact = false): Tensor2D {
  const { tf, native } = backend;
  const product = (a: Tensor2D, b: Tensor2D, transposeA: boolean, transposeB: boolean, exact = false) =>
    native
      ? native.matMul(a, b, transposeA, transposeB, exact)
      : tf.matMul<Tensor2D>(a, b, transposeA, transposeB);
  return customGradient<[Tensor2D, Tensor2D], [Tensor2D, Tensor2D], Tensor2D>(
    tf,
    (x, weight) => ({ value: product(x, weight, false, true, exact), saved: [x, weight] }),
    (dy, x, weight) => [product(dy, weight, false, false), product(dy, x, true, false)],
  )(x, weight);
}

/** x [N, out] + bias [out]. */
export function addBias(tf: Tf, x: Tensor2D, bias: Tensor1D): Tensor2D {
  return customGradient<[Tensor2D, Tensor1D], [], Tensor2D>(
    tf,
    (x, bias) => ({ value: tf.add(x, bias), saved: [] }),
    (dy) => [dy, tf.sum(dy, 0)],
  )(x, bias);
}
