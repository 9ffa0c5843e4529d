import { expect, test } from 'vitest';
import { chooseBranches, statesOf, treeOf } from '../../../../core/episode/tree.ts';
import type { TreePath } from '../../../../core/episode/tree.ts';
import { atOnce } from '../../../../engine/in-pieces.ts';

const branches = (...asked: Parameters<typeof chooseBranches>) => atOnce(chooseBranches(...asked));

/** Turns of one token each, an observation of one token after all but the last. */
function path(actions: readonly number[], reward: number, inherited = 0): TreePath {
  const turns = actions.map((_, k) => ({ start: 2 * k, end: 2 * k + 1 }));
  const tokens = actions.flatMap((action, k) => (k + 1 < actions.length ? [action, 100 + action] : [action]));
  return { tokens, turns, inherited, reward };
}
const search = { width: 2, exploration: 0.5 };

test('equal turns in one state are one action, worth the mean of all that went through it', () => {
  const root = treeOf([path([1, 2], 1), path([1, 3], 0), path([4], 0.5), path([1, 5], 0.5, 1)])!;
  expect(root.draws).toBe(3);
  expect(
    root.actions.map(({ visits, value, drawnAt, next }) => [visits, value, drawnAt, next.length]),
  ).toEqual([
    [3, 0.5, { sample: 0, turn: 0 }, 1],
    [1, 0.5, { sample: 2, turn: 0 }, 0],
  ]);
  const [state] = root.actions[0]!.next;
  expect(state!.draws).toBe(3);
  expect(state!.place).toEqual({ sample: 0, turn: 1 });
  expect(state!.actions.map(({ value }) => value)).toEqual([1, 0, 0.5]);
  expect(statesOf(root)).toEqual([root, state]);
});

test('the mean of an action is the same to the last bit in any order of its samples', () => {
  const valueOf = (rewards: number[]) =>
    treeOf(rewards.map((reward) => path([1], reward)))!.actions[0]!.value;
  expect(valueOf([0, 1, 1])).toBe(valueOf([1, 1, 0]));
  expect(valueOf([0.1, 0.2, 0.3])).toBe(valueOf([0.3, 0.2, 0.1]));
});

test('what was observed tells states apart that one action led to', () => {
  const other = { ...path([1, 2], 0), tokens: [1, 999, 2] };
  const root = treeOf([path([1, 2], 1), other])!;
  expect(root.actions).toHaveLength(1);
  expect(root.actions[0]!.next.map(({ actions }) => actions[0]!.value)).toEqual([1, 0]);
});

test('branches off where the value and what is unknown of it are largest, and spreads those of one round', () => {
  const paths = [path([1, 2, 3], 1), path([4, 5, 6], 0)];
  const root = treeOf(paths)!;
  // Below the better action first; then its state has as many draws as it should, and the search goes deeper.
  expect(branches(root, 1, search)).toEqual([{ sample: 0, turn: 1 }]);
  expect(branches(root, 4, { ...search, exploration: 0 })).toEqual([
    { sample: 0, turn: 1 },
    { sample: 0, turn: 2 },
    // Nothing that was drawn there leads on: it is drawn from again.
    { sample: 0, turn: 2 },
    { sample: 0, turn: 2 },
  ]);
  // Much exploration takes both in turn.
  expect(branches(root, 2, { ...search, exploration: 50 })).toEqual([
    { sample: 0, turn: 1 },
    { sample: 1, turn: 1 },
  ]);
});

test('UCB1 by hand: N and n count what has been chosen, too', () => {
  // Values 0.6 and 0.5, two visits each: √(ln 4 / 3) = 0.680 each, so the first; then 0.6 + c √(ln 5 / 4) = 0.6 + 0.634 c
  // against 0.5 + c √(ln 5 / 3) = 0.5 + 0.732 c: the second for c > 1.02, and the first below.
  const paths = [path([1, 2, 9], 0.6), path([1, 3, 9], 0.6), path([4, 5, 9], 0.5), path([4, 6, 9], 0.5)];
  const second = (exploration: number) =>
    branches(treeOf(paths)!, 2, { width: 3, exploration }).map(({ sample }) => sample);
  // The root has four draws: the width of three is had.
  expect(second(1)).toEqual([0, 0]);
  expect(second(1.05)).toEqual([0, 2]);
});

test('a state that many went through is drawn from more often: √N, where that is more than the width', () => {
  const nine = Array.from({ length: 9 }, (_, i) => path([1, 10 + i], 0, i === 0 ? 0 : 1));
  // Nine went through the root and two draws were made there: a third is due.
  expect(branches(treeOf([...nine.slice(0, 8), path([2], 0)])!, 1, search)).toEqual([{ sample: 0, turn: 0 }]);
  expect(branches(treeOf([...nine.slice(0, 7), path([2], 0)])!, 1, search)).toEqual([{ sample: 0, turn: 1 }]);
});

test('where every way has come to its end, samples begin anew', () => {
  expect(branches(treeOf([path([1], 1), path([2], 0)])!, 2, search)).toEqual([
    { sample: 0, turn: 0 },
    { sample: 0, turn: 0 },
  ]);
  expect(treeOf([])).toBeNull();
});

test('a root with fewer draws than it should have is drawn from first', () => {
  expect(branches(treeOf([path([1, 2], 1)])!, 2, search)).toEqual([
    { sample: 0, turn: 0 },
    { sample: 0, turn: 1 },
  ]);
});
