import type { Tensor } from '@tensorflow/tfjs';
import type { Tf } from '../tensorflow/backend.ts';
import type { OptimizerSettings } from '../contract.ts';
import type { NativeOps } from '../tensorflow/native-ops.ts';
import type { Adam } from './adam.ts';

/** Adam by TensorFlow's own kernel on resource variables: one pass over the weights, in place. */
export class NativeAdam implements Adam {
  private readonly tf: Tf;
  private readonly native: NativeOps;
  private readonly variables: { weight: Tensor; first: Tensor; second: Tensor }[];
  private current: Tensor[] | undefined;

  constructor(tf: Tf, native: NativeOps, weights: Tensor[], first: Tensor[], second: Tensor[]) {
    this.tf = tf;
    this.native = native;
    const variable = (tensor: Tensor) => {
      const handle = native.createVariable(tensor);
      // An update is in place only while nobody else holds the buffer.
      tensor.dispose();
      return handle;
    };
    this.variables = weights.map((weight, i) => ({
      weight: variable(weight),
      first: variable(first[i]!),
      second: variable(second[i]!),
    }));
  }

  weights(): Tensor[] {
    this.current ??= this.variables.map(({ weight }) => this.tf.keep(this.native.readVariable(weight)));
    return this.current;
  }

  moments(): { first: Tensor[]; second: Tensor[] } {
    return {
      first: this.variables.map(({ first }) => this.native.readVariable(first)),
      second: this.variables.map(({ second }) => this.native.readVariable(second)),
    };
  }

  update(gradients: Tensor[], rate: number, update: number, settings: OptimizerSettings): void {
    this.release();
    const { beta1, beta2, epsilon } = settings;
    this.tf.tidy(() => {
      const scalars = {
        beta1Power: this.tf.scalar(beta1 ** update),
        beta2Power: this.tf.scalar(beta2 ** update),
        rate: this.tf.scalar(rate),
        beta1: this.tf.scalar(beta1),
        beta2: this.tf.scalar(beta2),
        epsilon: this.tf.scalar(epsilon),
      };
      this.variables.forEach(({ weight, first, second }, i) => {
        this.native.applyAdam(weight, first, second, scalars, gradients[i]!);
      });
    });
  }

  dispose(): void {
    this.release();
    for (const { weight, first, second } of this.variables) {
      for (const handle of [weight, first, second]) this.native.destroyVariable(handle);
    }
  }

  private release(): void {
    this.current?.forEach((tensor) => tensor.dispose());
    this.current = undefined;
  }
}
