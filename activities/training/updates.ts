import { RandomStream } from '../../core/random.ts';
import type { UpdatePlan } from '../../core/requests.ts';

/**
 * The sequences of every update of a step, in order: each epoch shuffles by `seed` and cuts into as few minibatches as
 * hold all, as equal as can be. Adam makes a move of the same size out of each, so a rest of one sequence would move the
 * weights as far as hundreds do, along its own noise.
 */
export function updatesOf(sequences: number, { minibatch, epochs, seed }: UpdatePlan): Int32Array[] {
  const updates: Int32Array[] = [];
  for (let epoch = 0; epoch < epochs; epoch++) {
    const order = new RandomStream(seed, 'learner', 'minibatches', epoch).shuffle(
      Array.from({ length: sequences }, (_, i) => i),
    );
    const parts = Math.ceil(sequences / minibatch);
    const start = (part: number): number => Math.floor((part * sequences) / parts);
    for (let part = 0; part < parts; part++) {
      updates.push(Int32Array.from(order.slice(start(part), start(part + 1))));
    }
  }
  return updates;
}
