import type { Tensor } from '@tensorflow/tfjs';
import type { Tf } from './backend.ts';

/**
 * A function with a gradient by hand: fewer and larger kernels than what tfjs derives op by op, and fewer
 * intermediate tensors kept. `backward` gets the gradient of the result and what `forward` saved, and returns one
 * gradient per input.
 */
export function customGradient<Inputs extends Tensor[], Saved extends Tensor[], Result extends Tensor>(
  tf: Tf,
  forward: (...inputs: Inputs) => { value: Result; saved: [...Saved] },
  backward: (dy: Result, ...saved: Saved) => Tensor[],
): (...inputs: Inputs) => Result {
  const op: (...inputs: Tensor[]) => Tensor = tf.customGrad((...given) => {
    const save = given.at(-1) as unknown as (tensors: Tensor[]) => void;
    const { value, saved } = forward(...(given.slice(0, -1) as Inputs));
    save(saved);
    return {
      value,
      gradFunc: (dy: Tensor, kept: Tensor[]) => backward(dy as Result, ...(kept as Saved)),
    };
  });
  return (...inputs) => op(...inputs) as Result;
}

/** x, through which no gradient flows. */
export function stopGradient<T extends Tensor>(tf: Tf, x: T): T {
  return customGradient<[T], [], T>(
    tf,
    (x) => ({ value: tf.mul<T>(x, 1), saved: [] }),
    (dy) => [tf.zerosLike(dy)],
  )(x);
}
