import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { RandomStream } from '../../../../core/random.ts';
import type { TaskRef } from '../../../../core/refs.ts';
import type { TriedTask } from '../../../../core/requests/verification.ts';
import { drawTasks } from '../../../../core/training/task-draw.ts';
import { drawAgain, failedTasksOf, waitAgain, withoutTasks } from '../../../../core/training/tasks-again.ts';
import type { WaitingTask } from '../../../../core/training/tasks-again.ts';

const ref = (index: number): TaskRef => ({ environment: 'calculator', split: 'train', level: 1, index });
const tried = (index: number, successes: number): TriedTask => ({ ...ref(index), successes, trials: 8 });
const random = () => new RandomStream('test');
const MOST_TRIES = 4;

/** Steps at which a task is drawn whose samples solve it as `successesAt` says, by the number of the try. */
function drawnAt(
  successesAt: (tries: number) => number,
  mostTries: number | undefined,
  steps = 100,
): number[] {
  let waiting = waitAgain(
    { waiting: [], again: [], failed: [ref(1)], tried: [tried(1, successesAt(1))], step: 1 },
    mostTries,
  );
  const at: number[] = [1];
  for (let step = 2; step <= steps; step++) {
    const again = drawAgain(waiting, 8, step, random);
    waiting = waiting.filter((task) => !again.includes(task));
    if (again.length > 0) at.push(step);
    const successes = successesAt(at.length);
    waiting = waitAgain(
      {
        waiting,
        again,
        failed: again.length > 0 && 2 * successes < 8 ? [ref(1)] : [],
        tried: again.length > 0 && successes < 8 ? [tried(1, successes)] : [],
        step,
      },
      mostTries,
    );
  }
  return at;
}

describe('a task that no sample solves', () => {
  test('rests twice as long before each other try, and is let go after the last one', () => {
    expect(drawnAt(() => 0, MOST_TRIES)).toEqual([1, 4, 9, 18]);
  });

  test('is drawn in every step where nobody counts tries', () => {
    expect(drawnAt(() => 0, undefined, 20)).toEqual(Array.from({ length: 20 }, (_, i) => i + 1));
  });
});

describe('a task that some samples solve', () => {
  test('is drawn in the next step, until all do', () => {
    expect(drawnAt((tries) => [1, 4, 8][tries - 1]!, MOST_TRIES)).toEqual([1, 2, 3]);
  });

  test('is let go after as many tries, for chance may be all that there is to it', () => {
    expect(drawnAt(() => 4, MOST_TRIES)).toEqual([1, 2, 3, 4]);
  });

  test('is drawn before one that none has solved, and before one that nearly all have', () => {
    const waiting: WaitingTask[] = [tried(0, 0), tried(1, 7), tried(2, 4)].map((task) => ({
      ...task,
      tries: 1,
      due: 1,
    }));
    const first = Array.from(
      { length: 3000 },
      (_, seed) => drawAgain(waiting, 1, 1, () => new RandomStream(seed))[0]!,
    );
    const [none, most, half] = waiting.map((task) => first.filter((one) => one === task).length);
    expect(half).toBeGreaterThan(1.5 * most!);
    expect(most).toBeGreaterThan(3 * none!);
    expect(none).toBeGreaterThan(0);
  });
});

test('what waits stays small, and those that rest are not driven out by those that do not', () => {
  const outcome = fc.tuple(fc.nat(1000), fc.nat(7));
  fc.assert(
    fc.property(fc.array(fc.array(outcome, { maxLength: 60 }), { maxLength: 12 }), (steps) => {
      let waiting: WaitingTask[] = [];
      for (const [i, outcomes] of steps.entries()) {
        const all = outcomes.map(([index, successes]) => tried(index, successes));
        waiting = waitAgain({ waiting, again: [], failed: [], tried: all, step: i + 1 }, MOST_TRIES);
        expect(waiting.length).toBeLessThanOrEqual(64);
        const unsolved = all.filter(({ successes }) => successes === 0);
        const resting = waiting.filter(({ successes }) => successes === 0);
        expect(resting.length).toBeGreaterThanOrEqual(Math.min(32, unsolved.length));
      }
    }),
  );
});

/**
 * A stage of a policy that has mastered most tasks, fails some for ever, and is learning the rest, from its weights to
 * what it is drawn: parts of the groups with contrast, and of groups of tasks that are never solved.
 */
function simulate(mostTries: number | undefined, retryFailures: number) {
  const chanceOf = ({ index }: TaskRef): number => {
    const kind = new RandomStream('kind of task', index).uniform();
    if (kind < 0.02) return 0;
    return kind < 0.22 ? 0.6 : 0.995;
  };
  let failures: WaitingTask[] = [];
  const groups = { all: 0, contrast: 0, hopeless: 0 };
  for (let step = 1; step <= 80; step++) {
    const drawn = drawTasks({
      seed: 1,
      stage: 'rl',
      step,
      arms: [{ environment: 'calculator', level: 1 }],
      count: 64,
      tasksBefore: 0,
      estimates: {},
      failures,
      retryFailures,
    });
    const outcomes = drawn.tasks.map((task, i): TriedTask => {
      const stream = new RandomStream('samples', step, i);
      const successes = Array.from({ length: 8 }).filter(() => stream.uniform() < chanceOf(task)).length;
      return { ...task, successes, trials: 8 };
    });
    // The state goes through JSON between steps, as it does when a stage continues as new.
    failures = JSON.parse(
      JSON.stringify(
        waitAgain(
          {
            waiting: withoutTasks(failures, drawn.again),
            again: drawn.again,
            failed: outcomes.filter(({ successes }) => successes < 4).map(({ index }) => ref(index)),
            tried: outcomes.filter(({ successes }) => successes < 8),
            step,
          },
          mostTries,
        ),
      ),
    ) as WaitingTask[];
    groups.all += outcomes.length;
    groups.contrast += outcomes.filter(({ successes }) => successes > 0 && successes < 8).length;
    groups.hopeless += outcomes.filter((task) => chanceOf(task) === 0).length;
  }
  return { contrast: groups.contrast / groups.all, hopeless: groups.hopeless / groups.all };
}

test('a policy that is nearly done is given tasks with contrast, and few that it never solves', () => {
  const before = simulate(undefined, 0.125);
  expect(before.hopeless).toBeGreaterThan(0.1);
  const after = simulate(6, 0.125);
  expect(after.hopeless).toBeLessThan(0.04);
  expect(after.contrast).toBeGreaterThan(1.3 * before.contrast);
  expect(simulate(6, 0.4).contrast).toBeGreaterThan(1.8 * before.contrast);
});

test('a task is failed when fewer than half of its samples solved it', () => {
  expect(failedTasksOf({ tried: [tried(1, 0), tried(2, 3), tried(3, 4), tried(4, 7)] })).toEqual([
    ref(1),
    ref(2),
  ]);
  expect(failedTasksOf({})).toEqual([]);
});

test('of a result from before it was told how often a task was solved, the failed tasks are those that it names', () => {
  expect(failedTasksOf({ failedTasks: [ref(5)] })).toEqual([ref(5)]);
});
