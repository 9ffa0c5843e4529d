import { expect, test } from 'vitest';
import { algorithmSchema, computeAdvantages } from '../../../../core/algorithms/index.ts';
import type { Sample } from '../../../../core/algorithms/sample.ts';
import { taskGroup } from '../../../support/task-group.ts';

// Two samples that are equal to the letter, one of which branched off, are worth the same.

/** Turns of two tokens, each paid what is said. */
function sample(paid: readonly number[], reward: number, inherited = 0): Sample {
  const turns = paid.map((one, k) => ({ start: 2 * k, end: 2 * k + 2, reward: one, state: `${k}` }));
  const tokens = paid.flatMap((_, k) => [k, k]);
  return {
    reward,
    success: reward > 0.5,
    tokens,
    mask: tokens.map((_, at) => (at < 2 * inherited ? 0 : 1)),
    before: turns.slice(0, inherited),
    turns: turns.slice(inherited),
    samplerLogprobs: tokens.map(() => -1),
    scores: {},
    truncated: false,
  };
}
const credit = (spec: object, samples: Sample[]) =>
  computeAdvantages(algorithmSchema.parse(spec), [taskGroup(samples)]);

test('by gigpo, which compares what whole episodes were paid', () => {
  const samples = [sample([0.3, 0.2], 1), sample([0.3, 0.2], 1, 1), sample([0.1, 0.2], 0)];
  const [root, branched] = credit({ kind: 'gigpo', omega: 0 }, samples);
  expect(branched!.advantages.slice(2)).toEqual(root!.advantages.slice(2));
  expect(branched!.advantages.slice(0, 2)).toEqual([0, 0]);
});

test('by process, which compares the same turns of episodes', () => {
  const samples = [sample([0, 1], 1), sample([0, 1], 1, 1), sample([0, 1], 1)];
  for (const { advantages } of credit({ kind: 'process', over: 'turn' }, samples))
    expect(advantages.every((one) => one === 0)).toBe(true);
});
