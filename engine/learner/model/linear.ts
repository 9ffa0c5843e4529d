import type { Tensor1D, Tensor2D } from '@tensorflow/tfjs';
import type { TensorflowBackend, Tf } from '../tensorflow/backend.ts';
import { customGradient } from '../tensorflow/custom-gradient.ts';

/** a b, either transposed first. An `exact` product is float32 throughout whatever the precision. */
export const product = (
  { tf, native }: TensorflowBackend,
  a: Tensor2D,
  b: Tensor2D,
  transposeA: boolean,
  transposeB: boolean,
  exact = false,
): Tensor2D =>
  native
    ? native.matMul(a, b, transposeA, transposeB, exact)
    : tf.matMul<Tensor2D>(a, b, transposeA, transposeB);

/** x [N, in] by a weight [out, in]: y = x Wᵀ, [N, out]. A `frozen` weight has no gradient, which is as large as itself. */
export function linear(backend: TensorflowBackend, x: Tensor2D, weight: Tensor2D, frozen = false): Tensor2D {
  if (frozen) {
    return customGradient<[Tensor2D], [], Tensor2D>(
      backend.tf,
      (x) => ({ value: product(backend, x, weight, false, true), saved: [] }),
      (dy) => [product(backend, dy, weight, false, false)],
    )(x);
  }
  return customGradient<[Tensor2D, Tensor2D], [Tensor2D, Tensor2D], Tensor2D>(
    backend.tf,
    (x, weight) => ({ value: product(backend, x, weight, false, true), saved: [x, weight] }),
    (dy, x, weight) => [product(backend, dy, weight, false, false), product(backend, dy, x, true, false)],
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
