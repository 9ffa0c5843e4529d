import type { Tensor1D, Tensor2D } from '@tensorflow/tfjs';
import type { Tf } from '../tensorflow/backend.ts';

/** onehot(indices) [N, depth], float32. The WebAssembly kernel of tfjs 4.22 is right for int32 only, hence the cast. */
export function oneHot(tf: Tf, indices: Tensor1D, depth: number): Tensor2D {
  return tf.cast(tf.oneHot(indices, depth, 1, 0, 'int32') as Tensor2D, 'float32');
}
