import { GradusError } from '../../core/errors.ts';
import { randomKey, RandomStream, uniform } from '../../core/random.ts';
import type { Split, TaskRef } from '../../core/refs.ts';

// Tasks that are generated: the same coordinates always give the same task, and the same problem is never in two splits.
// Every draw is a function of coordinates, and the split of a problem a function of the problem itself.

/** Which part of all problems each split has; together 1. */
export type Shares = Readonly<Record<Split, number>>;

const SHARES: Shares = { train: 0.6, heldout: 0.2, test: 0.2 };
/** Draws for one task: a split that has a thousandth of all problems is found with a probability of 1 − 5e-5. */
const MOST_DRAWS = 10_000;
/** How far from 1 shares may add up to, by rounding. */
const ROUNDING = 1e-9;

/**
 * The split of a problem, by its digest alone: however often the problem is made, at whatever level and index, it is in
 * this split and no other. `problem` is what makes two tasks the same problem: leave out of it how it is told. `family` keeps
 * different environments apart. By default 60 % of problems are in `train`, 20 % in `heldout` and 20 % in `test`.
 * Throws GradusError('environment', 'task') for shares that do not add up to 1.
 */
export function splitOfProblem(family: string, problem: string, shares: Shares = SHARES): Split {
  const { train, heldout, test } = shares;
  if (Math.min(train, heldout, test) < 0 || Math.abs(train + heldout + test - 1) > ROUNDING) {
    throw new GradusError(
      'environment',
      'task',
      `shares of splits are parts of 1 and add up to it, and these do not: ${JSON.stringify(shares)}`,
    );
  }
  const draw = uniform(randomKey(family, 'split', problem), 0);
  return draw < train ? 'train' : draw < 1 - test ? 'heldout' : 'test';
}

/**
 * Random numbers of a task, by its coordinates: the same ones in every process, and others for other coordinates.
 * `purpose` makes a second stream that is independent of the first.
 */
export const randomOf = (ref: TaskRef, purpose = 'task'): RandomStream =>
  new RandomStream(ref.environment, purpose, ref.split, ref.level, ref.index);

/**
 * The problem at `ref`: `draw` is called with the task's random numbers until it gives a problem of the split. `problemOf`
 * says what makes two of them the same problem (see `splitOfProblem`). Of few problems the same one comes at several indexes
 * of a split; `dealTasks` gives each of them once. `draw` may give undefined for what is no problem.
 * Throws GradusError('environment', 'task') where 10,000 draws gave none of the split: there are too few problems.
 */
export function drawTask<Problem>(
  ref: TaskRef,
  draw: (random: RandomStream) => Problem | undefined,
  problemOf: (problem: Problem) => string,
  { family = ref.environment, shares = SHARES }: { family?: string; shares?: Shares } = {},
): Problem {
  const random = randomOf({ ...ref, environment: family });
  for (let n = 0; n < MOST_DRAWS; n++) {
    const problem = draw(random);
    if (problem !== undefined && splitOfProblem(family, problemOf(problem), shares) === ref.split)
      return problem;
  }
  throw new GradusError(
    'environment',
    'task',
    `${ref.environment} has no ${ref.split} task ${ref.index} at level ${ref.level}: ${MOST_DRAWS} draws gave no problem of that split. There are too few different ones: let there be more, or leave the level out`,
  );
}

/** Problems that are listed, dealt to the splits. */
export interface Dealt<Problem> {
  /** The problem of these coordinates, each once before any comes again. Throws GradusError('environment', 'task') where the split has none. */
  at(ref: Pick<TaskRef, 'split' | 'index'>): Problem;
  /** How many a split has: what `taskCount` is to say. */
  count(split: Split): number;
}

/**
 * Deals listed problems to the splits, each by its digest, in an order that is shuffled: a problem that is added to the list
 * moves no other one to another split. One that is listed twice is dealt once.
 * Throws GradusError('environment', 'task') for shares that do not add up to 1.
 */
export function dealTasks<Problem>(
  family: string,
  problems: Iterable<Problem>,
  problemOf: (problem: Problem) => string,
  { shares = SHARES }: { shares?: Shares } = {},
): Dealt<Problem> {
  const dealt: Record<Split, { problem: Problem; place: number }[]> = { train: [], heldout: [], test: [] };
  const known = new Set<string>();
  for (const problem of problems) {
    const text = problemOf(problem);
    if (known.has(text)) continue;
    known.add(text);
    const place = uniform(randomKey(family, 'order', text), 0);
    dealt[splitOfProblem(family, text, shares)].push({ problem, place });
  }
  for (const all of Object.values(dealt)) all.sort((a, b) => a.place - b.place);
  return {
    at: ({ split, index }) => {
      const { length } = dealt[split];
      if (length > 0) return dealt[split][index % length]!.problem;
      throw new GradusError(
        'environment',
        'task',
        `${family} has no ${split} tasks: of its ${known.size} problems none is in that split. Let there be more, or give the split a larger share`,
      );
    },
    count: (split) => dealt[split].length,
  };
}
