import { expect, test } from 'vitest';
import { labelledSequences } from '../../../../activities/training/reward-examples.ts';
import type { RewardExample } from '../../../../activities/training/reward-examples.ts';
import { packBatch } from '../../../../activities/training/training-batch.ts';
import { problemOfLabels } from '../../../../engine/learner/losses/reward-model.ts';

/** Two turns each, which end before the tokens 3 and 5. */
const example = (task: number, label: number): RewardExample => ({
  tokens: [task, 1, 2, 3, 4, 5],
  ends: [3, 5],
  task,
  label,
  success: label === 1,
  steps: [0.25, label],
});
const tasks = Array.from({ length: 12 }, (_, task) => [1, 0.5, 0, 0].map((label) => example(task, label)));
const train = tasks.flat();
const of = { seed: 1, stage: 'judge', model: 0, models: 2, pairsPerTask: 4 };
const tasksIn = (sequences: { tokens: number[] }[]): number[] => sequences.map(({ tokens }) => tokens[0]!);

test('outcomes are labels at the end of every turn, and steps are the turn’s own', () => {
  const outcomes = labelledSequences(train, { ...of, labels: 'outcomes' });
  expect(outcomes).toHaveLength(train.length);
  for (const { mask, streams } of outcomes) {
    expect(mask).toEqual([0, 0, 0, 1, 0, 1]);
    expect(streams.returns![3]).toBe(streams.returns![5]);
  }
  for (const { streams } of labelledSequences(train, { ...of, labels: 'steps' }))
    expect(streams.returns!.slice(0, 4)).toEqual([0, 0, 0, 0.25]);
});

test('pairs are of one task, the better one first, each sample in one of them, and fit the learner', () => {
  const pairs = labelledSequences(train, { ...of, labels: 'pairs' });
  for (let at = 0; at < pairs.length; at += 2) {
    const [better, worse] = [pairs[at]!, pairs[at + 1]!];
    expect([better.pair, better.label, worse.pair, worse.label]).toEqual([at / 2, 1, at / 2, -1]);
    expect(better.tokens[0]).toBe(worse.tokens[0]);
    expect(better.streams.returns![5]).toBeGreaterThan(worse.streams.returns![5]!);
    expect(better.mask).toEqual([0, 0, 0, 0, 0, 1]);
  }
  // 1 with 0, and 0.5 with 0.
  expect(pairs).toHaveLength(tasks.length * 4);
  expect(labelledSequences(train, { ...of, pairsPerTask: 1, labels: 'pairs' })).toHaveLength(
    tasks.length * 2,
  );
  const batch = packBatch(pairs, { minibatch: 6, epochs: 1, seed: 1 });
  expect(problemOfLabels('bradley-terry', batch)).toBeUndefined();
});

test('tasks whose samples are all worth the same make no pair', () => {
  const equal = tasks.flatMap(([first], task) => [first!, example(task, 1)]);
  expect(labelledSequences(equal, { ...of, labels: 'pairs' })).toEqual([]);
});

test('no model draws tasks that make no pair, so none is left without one', () => {
  const equal = tasks.flatMap(([first], task) => [first!, example(task, task === 3 ? 0 : 1)]);
  for (let model = 0; model < 8; model++)
    expect(labelledSequences(equal, { ...of, model, models: 8, labels: 'pairs' })).toHaveLength(2);
});

test('a model that is alone learns from every task, once', () => {
  const alone = labelledSequences(train, { ...of, models: 1, labels: 'outcomes' });
  expect(tasksIn(alone)).toEqual(train.map(({ task }) => task));
});

test('each model of an ensemble draws its own tasks, with all of their samples, the same in every epoch', () => {
  const drawn = (model: number) => tasksIn(labelledSequences(train, { ...of, model, labels: 'outcomes' }));
  expect(drawn(0)).toEqual(drawn(0));
  expect(drawn(1)).not.toEqual(drawn(0));
  const counts = new Map<number, number>();
  for (const task of drawn(0)) counts.set(task, (counts.get(task) ?? 0) + 1);
  expect([...counts.values()].every((count) => count % 4 === 0)).toBe(true);
  // With replacement: some come twice.
  expect(Math.max(...counts.values())).toBeGreaterThan(4);
});
