import { RandomStream } from '../../core/random.ts';
import type { UpdatePlan } from '../../core/requests/batch.ts';

/**
 * The sequences of every update of a step, in order: each epoch shuffles by `seed` and cuts into as few minibatches as
 * hold all, as equal as can be. Adam makes a move of the same size out of each, so a rest of one sequence would move the
 * weights as far as hundreds do, along its own noise. `sequences` is their number, or their places by
 * what must stay together, such as the two of a pair. `largest` is what a place of several counts as: the branches of an
 * episode are one, and no fewer episodes share an update for them.
 */
export function updatesOf(
  sequences: number | readonly (readonly number[])[],
  { minibatch, epochs, seed }: UpdatePlan,
  largest?: number,
): Int32Array[] {
  const units = typeof sequences === 'number' ? Array.from({ length: sequences }, (_, i) => [i]) : sequences;
  const updates: Int32Array[] = [];
  const most = largest ?? units.reduce((longest, { length }) => Math.max(longest, length), 1);
  const perUpdate = Math.max(1, Math.floor(minibatch / most));
  for (let epoch = 0; epoch < epochs; epoch++) {
    const order = new RandomStream(seed, 'learner', 'minibatches', epoch).shuffle([...units]);
    const parts = Math.ceil(units.length / perUpdate);
    const start = (part: number): number => Math.floor((part * units.length) / parts);
    for (let part = 0; part < parts; part++) {
      updates.push(Int32Array.from(order.slice(start(part), start(part + 1)).flat()));
    }
  }
  return updates;
}
