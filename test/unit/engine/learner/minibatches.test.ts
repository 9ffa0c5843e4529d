import { expect, it } from 'vitest';
import { minibatches } from '../../../../engine/learner/minibatches.ts';
import { GRPO, settings } from './tiny.ts';

it('visits every sequence once an epoch, in an order that the seed alone decides', () => {
  const plan = settings(GRPO, { minibatch: 4, epochs: 3, seed: 5 });
  const updates = minibatches(10, plan);
  expect(updates.map((update) => update.length)).toEqual([4, 4, 2, 4, 4, 2, 4, 4, 2]);
  for (let epoch = 0; epoch < 3; epoch++) {
    const visited = updates.slice(epoch * 3, epoch * 3 + 3).flat();
    expect(visited.toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  }
  expect(minibatches(10, plan)).toEqual(updates);
  expect(minibatches(10, { ...plan, seed: 6 })).not.toEqual(updates);
});
