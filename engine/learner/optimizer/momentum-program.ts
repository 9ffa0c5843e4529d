import type { Tensor, Tensor2D } from '@tensorflow/tfjs';
import type { TensorflowBackend } from '../tensorflow/backend.ts';
import type { Program } from '../programs/program.ts';

/**
 * In: the gradients, then Adam's first moments of the same tensors. Out: their dot product [], and the squared L2 norm of
 * the moments [], over all tensors together.
 */
export function momentumProgram({ tf, native }: TensorflowBackend): Program {
  return {
    key: JSON.stringify(['momentum']),
    precision: 'float32',
    compute: (given) =>
      tf.tidy(() => {
        const gradients = given.slice(0, given.length / 2);
        const moments = given.slice(given.length / 2);
        const row = (tensor: Tensor): Tensor2D => tf.reshape(tensor, [1, tensor.size]);
        // One pass, without an array of the products.
        const products = gradients.map((gradient, i) => {
          const [a, b] = [row(gradient), row(moments[i]!)];
          return tf.reshape(
            native ? native.matMul(a, b, false, true, true) : tf.matMul(a, b, false, true),
            [],
          );
        });
        const halves = moments.map((moment) =>
          native ? native.halfSquaredNorm(moment) : tf.mul(tf.sum(tf.square(moment)), 0.5),
        );
        return [tf.addN(products), tf.mul(tf.addN(halves), 2)];
      }),
  };
}
