import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { TaskRef } from '../../../../core/refs.ts';
import { drawTasks, learnability, updateEstimates } from '../../../../core/training/task-draw.ts';
import type { ArmEstimates, TaskDraw } from '../../../../core/training/task-draw.ts';
import { withoutTasks } from '../../../../core/training/tasks-again.ts';

const arm = (level: number) => ({ environment: 'calculator', level });
const failed = (index: number): TaskRef => ({ environment: 'calculator', split: 'train', level: 1, index });
const draw = (over: Partial<TaskDraw> = {}) =>
  drawTasks({
    seed: 1,
    stage: 'rl',
    step: 1,
    arms: [arm(1), arm(2), arm(3)],
    count: 16,
    tasksBefore: 0,
    estimates: {},
    failures: [],
    retryFailures: 0.25,
    ...over,
  });

describe('the weight of an arm', () => {
  test('is largest where half of the episodes succeed, and never zero', () => {
    const at = (successes: number) => learnability({ successes, trials: 1000 });
    expect(at(500)).toBeGreaterThan(at(300));
    expect(at(300)).toBeGreaterThan(at(100));
    expect(at(300)).toBeCloseTo(at(700), 12);
    expect(at(0)).toBeGreaterThan(0.04);
    expect(learnability(undefined)).toBe(learnability({ successes: 1, trials: 2 }));
  });

  test('decides how often it is drawn', () => {
    const estimates: ArmEstimates = {
      'calculator:1': { successes: 1000, trials: 1000 },
      'calculator:2': { successes: 500, trials: 1000 },
      'calculator:3': { successes: 0, trials: 1000 },
    };
    const { tasks } = draw({ count: 6000, estimates });
    const weights = Object.values(estimates).map(learnability);
    const all = weights.reduce((a, b) => a + b);
    for (const [i, weight] of weights.entries()) {
      const share = tasks.filter(({ level }) => level === i + 1).length / tasks.length;
      expect(Math.abs(share - weight / all)).toBeLessThan(0.02);
    }
  });
});

describe('the tasks of a stage', () => {
  test('are fresh in every step', () => {
    const seen = new Set<string>();
    for (let step = 1; step <= 50; step++) {
      for (const { level, index } of draw({ step }).tasks) seen.add(`${level}/${index}`);
    }
    expect(seen.size).toBe(50 * 16);
  });

  test('follow from seed, stage and step alone', () => {
    expect(draw()).toEqual(draw());
    const levels = (over: Partial<TaskDraw>) => draw(over).tasks.map(({ level }) => level);
    for (const other of [{ seed: 2 }, { stage: 'other' }, { step: 2 }]) {
      expect(levels(other)).not.toEqual(levels({}));
    }
  });

  test('take the oldest failures first, no more than their part, and leave the others in line', () => {
    const failures = [7, 8, 9, 10, 11, 12].map(failed);
    const { tasks, again } = draw({ failures });
    expect(tasks).toHaveLength(16);
    expect(tasks.slice(0, 4)).toEqual(failures.slice(0, 4));
    expect(withoutTasks(failures, again)).toEqual(failures.slice(4));
  });

  test('are of the train split only, as many as asked for', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 40 }),
        fc.nat(20),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (count, waiting, retryFailures) => {
          const failures = Array.from({ length: waiting }, (_, i) => failed(i));
          const drawn = draw({ count, failures, retryFailures });
          expect(drawn.tasks).toHaveLength(count);
          expect(drawn.tasks.every(({ split }) => split === 'train')).toBe(true);
          const retried = failures.length - withoutTasks(failures, drawn.again).length;
          expect(retried).toBe(Math.min(waiting, Math.floor(count * retryFailures)));
        },
      ),
    );
  });
});

describe('estimates', () => {
  const tally = fc.record({
    arm: fc.integer({ min: 1, max: 4 }).map(arm),
    successes: fc.nat(16),
    trials: fc.nat(16),
  });
  const tallies = fc.array(tally, { maxLength: 10 });
  const inTime = { moves: [], stage: 'rl', step: 1 };

  test('do not depend on the order in which groups come in', () => {
    const before: ArmEstimates = { 'calculator:1': { successes: 4, trials: 8 } };
    const shuffled = tallies.chain((all) =>
      fc.tuple(fc.constant(all), fc.shuffledSubarray(all, { minLength: all.length })),
    );
    fc.assert(
      fc.property(shuffled, ([all, other]) => {
        const [one, two] = [updateEstimates(before, all, inTime), updateEstimates(before, other, inTime)];
        expect(Object.keys(two).toSorted()).toEqual(Object.keys(one).toSorted());
        for (const [name, { successes, trials }] of Object.entries(one)) {
          expect(two[name]!.successes).toBeCloseTo(successes, 9);
          expect(two[name]!.trials).toBeCloseTo(trials, 9);
        }
      }),
    );
  });

  test('forget half within seven steps, and leave what they were made from alone', () => {
    const start: ArmEstimates = { 'calculator:1': { successes: 16, trials: 16 } };
    let now = start;
    for (let step = 0; step < 7; step++) now = updateEstimates(now, [], inTime);
    expect(now['calculator:1']!.trials / 16).toBeLessThan(0.5);
    expect(now['calculator:1']!.trials / 16).toBeGreaterThan(0.45);
    expect(start['calculator:1']).toEqual({ successes: 16, trials: 16 });
  });
});
