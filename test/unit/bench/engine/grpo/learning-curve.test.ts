import { expect, test } from 'vitest';
import { compareToTarget, reachedAt } from '../../../../../bench/engine/grpo/learning-curve.ts';

const curve = (...points: [step: number, seconds: number, success: number][]) =>
  points.map(([step, seconds, success]) => ({ step, seconds, success }));

test('the target is reached at the first point at or above it, wherever success goes from there', () => {
  const points = curve([0, 0, 0.7], [5, 6, 0.8], [10, 11, 0.9], [15, 17, 0.88]);
  expect(reachedAt(points, 0.9)).toEqual(points[2]);
  expect(reachedAt(curve([0, 0, 0.7], [5, 6, 0.8]), 0.9)).toBeUndefined();
});

test('where a run starts is no success of its training', () => {
  expect(reachedAt(curve([0, 0, 0.95], [5, 6, 0.96]), 0.9)).toMatchObject({ step: 5 });
});

const ours = { step: 40, seconds: 50, success: 0.91 };

test('an anchor that reached the target is compared by the time when it did', () => {
  const theirs = curve([0, 0, 0.7], [30, 150, 0.85], [45, 220, 0.9]);
  expect(compareToTarget(ours, theirs, { target: 0.9, bound: 6 })).toEqual({
    seconds: 220,
    outcome: 'ours in 40 RL steps, TRL in 45',
  });
});

test('an anchor that used up its bound is told of as it stood then, and its ratio as a least one', () => {
  const theirs = curve([0, 0, 0.7], [30, 150, 0.82], [60, 301, 0.874]);
  const { seconds, outcome } = compareToTarget(ours, theirs, { target: 0.9, bound: 6 });
  expect(seconds).toBe(301);
  expect(outcome).toMatch(/not within its bound \(60 steps, 301\.0 s: 87\.4 %\): the ratio is at least this/);
});

test('an anchor that was stopped early is compared with nothing', () => {
  expect(() => compareToTarget(ours, curve([0, 0, 0.7], [30, 299, 0.8]), { target: 0.9, bound: 6 })).toThrow(
    /before it had reached the target or its bound/,
  );
});
