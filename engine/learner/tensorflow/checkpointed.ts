import type { Tensor, Tensor1D } from '@tensorflow/tfjs';
import type { Tf } from './backend.ts';
import { customGradient } from './custom-gradient.ts';

/**
 * Gradient checkpointing (Chen et al. 2016, "Training deep nets with sublinear memory cost", section 3): of what
 * `compute` makes only its inputs are kept, and the rest is computed again when the gradient arrives. `x` and the result
 * have one shape. `given` has no gradient; the first of it are token ids, 0 or more.
 */
export function checkpointed<X extends Tensor, Given extends [Tensor1D, ...Tensor[]]>(
  tf: Tf,
  compute: (given: Given, x: X, ...weights: Tensor[]) => X,
  given: Given,
): (x: X, ...weights: Tensor[]) => X {
  return customGradient<[X, ...Tensor[]], [X, ...Tensor[]], X>(
    tf,
    (x, ...weights) => ({ value: compute(given, x, ...weights), saved: [x, ...weights, ...given] }),
    (dy, x, ...saved) => {
      const weights = saved.slice(0, -given.length);
      const kept = saved.slice(-given.length) as Given;
      // In a graph the second computation would be the same nodes over the same inputs: TensorFlow would merge the two,
      // or run both at the start. So its input is made to depend on `dy`, in a way that only running it sees through.
      const always = tf.greaterEqual(tf.slice(kept[0], 0, 1), 0);
      const again = tf.where(always, x, dy);
      return gradientsWithin(tf, () =>
        tf.grads((x, ...weights) => compute(kept, x as X, ...weights))([again, ...weights], dy),
      );
    },
  );
}

/** A gradient inside the backward pass of another one, which tfjs 4.22 takes for the end of the outer one. */
function gradientsWithin<T>(tf: Tf, inner: () => T): T {
  const { state } = tf.engine() as unknown as { state: { activeTape: unknown } };
  const outer = state.activeTape;
  try {
    return inner();
  } finally {
    state.activeTape = outer;
  }
}
