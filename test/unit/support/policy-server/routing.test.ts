import { expect, test } from 'vitest';
import { placeOf, routingOf } from '../../../support/policy-server/routing.ts';
import type { PlacedPiece } from '../../../support/policy-server/routing.ts';

const pieces = (task: string, ...servers: readonly string[]): PlacedPiece[] =>
  servers.map((server) => ({
    stage: 'rl',
    step: 1,
    task,
    piece: { tokens: [1], samplerLogprobs: [-1], finish: 'stop', served: { server, weights: 'w' } },
  }));

test('a piece is of the task whose samples its episode is among', () => {
  const key = (episode: number) => `runs/r/parts/rl/000003/8/sampled-${episode}-12.json`;
  expect(placeOf(key(7), 8)).toEqual({ stage: 'rl', step: 3, task: '000003/8/0' });
  expect(placeOf(key(8), 8).task).toBe('000003/8/1');
});

test('what part of its pieces a server of its own has is told beside what chance would give it', () => {
  const own = routingOf([...pieces('a', 'x', 'x'), ...pieces('b', 'y', 'y')]);
  // Of two pieces both are at one server in half of the cases, else one is: 1 / 2 + 1 / 2 · 1 / 2.
  expect(own).toEqual({ pieces: { x: 2, y: 2 }, tasks: 2, own: 1, byChance: 0.75 });
  const shared = routingOf([...pieces('a', 'x', 'y'), ...pieces('b', 'y', 'x')]);
  expect(shared).toMatchObject({ own: 0.5, byChance: 0.75 });
  // Four pieces, three quarters of them at x: k of 4 there with probability 1, 12, 54, 108 and 81 of 256.
  const { byChance } = routingOf(pieces('a', 'x', 'x', 'x', 'y'));
  expect(byChance).toBeCloseTo((4 * 1 + 3 * 12 + 2 * 54 + 3 * 108 + 4 * 81) / 256 / 4, 12);
});
