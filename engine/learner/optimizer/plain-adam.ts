import type { Tensor } from '@tensorflow/tfjs';
import type { Tf } from '../tensorflow/backend.ts';
import type { OptimizerSettings } from '../contract.ts';
import type { Adam } from './adam.ts';

/** Adam op by op, for backends without TensorFlow's kernel. */
export class PlainAdam implements Adam {
  private readonly tf: Tf;
  private state: [weight: Tensor, first: Tensor, second: Tensor][];

  constructor(tf: Tf, weights: Tensor[], first: Tensor[], second: Tensor[]) {
    this.tf = tf;
    this.state = weights.map((weight, i) => [weight, first[i]!, second[i]!]);
  }

  weights(): Tensor[] {
    return this.state.map(([weight]) => weight);
  }

  moments(): { first: Tensor[]; second: Tensor[] } {
    return {
      first: this.state.map(([, first]) => this.tf.clone(first)),
      second: this.state.map(([, , second]) => this.tf.clone(second)),
    };
  }

  update(gradients: Tensor[], rate: number, update: number, settings: OptimizerSettings): void {
    const { tf } = this;
    const { beta1, beta2, epsilon } = settings;
    const corrected = (rate * Math.sqrt(1 - beta2 ** update)) / (1 - beta1 ** update);
    this.state = this.state.map((old, i) => {
      const next = tf.tidy((): [Tensor, Tensor, Tensor] => {
        const [weight, first, second] = old;
        const gradient = gradients[i]!;
        const m = tf.add(tf.mul(first, beta1), tf.mul(gradient, 1 - beta1));
        const v = tf.add(tf.mul(second, beta2), tf.mul(tf.square(gradient), 1 - beta2));
        const change = tf.div(tf.mul(m, corrected), tf.add(tf.sqrt(v), epsilon));
        return [tf.keep(tf.sub(weight, change)), tf.keep(m), tf.keep(v)];
      });
      old.forEach((tensor) => tensor.dispose());
      return next;
    });
  }

  dispose(): void {
    this.state.flat().forEach((tensor) => tensor.dispose());
  }
}
