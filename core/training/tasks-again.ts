import type { RandomStream } from '../random.ts';
import type { TaskRef } from '../refs.ts';
import type { GroupResult, TriedTask } from '../requests/verification.ts';

// Tasks that are drawn again. What is known of a single task says more than what is known of its level: one that some of
// its samples have just solved and some failed is likely to have contrast again. One that none has solved teaches nothing
// to group-relative advantages: it rests before each other try, twice as long each time, for the policy may come to solve
// it. Each is let go after so many tries, lest one that fails by chance, or for ever, is drawn in every step.

/** A task that waits to be drawn again. */
export interface WaitingTask extends TaskRef {
  /** Of its latest try; absent, like what follows, where nobody counts. */
  successes?: number;
  trials?: number;
  tries?: number;
  /** The first step of the stage that may draw it. */
  due?: number;
}

/** How many failed tasks wait in runs that count no tries: the newest. */
const MOST_FAILURES = 64;
/** How many wait with some success, and how many with none: the newest of each. */
const KEPT_OF_EACH = 32;

/** A task that no sample has solved is not left out: it has rested, and the policy is another one. */
const FLOOR = 0.02;

/** What there is to learn from a task: the variance of a success. */
function contrastOf({ successes = 0, trials = 0 }: WaitingTask): number {
  const p = trials === 0 ? 0 : successes / trials;
  return p * (1 - p) + FLOOR;
}

const isUnsolved = ({ successes, trials = 0 }: Pick<WaitingTask, 'successes' | 'trials'>): boolean =>
  successes === 0 && trials > 0;

/** The coordinates alone. */
export const taskRefOf = ({ environment, split, level, index }: TaskRef): TaskRef => ({
  environment,
  split,
  level,
  index,
});

/** Tasks that fewer than half of their samples solved. */
export const failedTasksOf = ({
  failedTasks,
  tried = [],
}: Pick<GroupResult, 'failedTasks' | 'tried'>): TaskRef[] =>
  failedTasks ?? tried.filter(({ successes, trials }) => 2 * successes < trials).map(taskRefOf);

const isSame = (a: TaskRef, b: TaskRef): boolean =>
  a.index === b.index && a.level === b.level && a.environment === b.environment && a.split === b.split;

/** Those that wait and are none of `taken`. */
export const withoutTasks = (waiting: readonly WaitingTask[], taken: readonly WaitingTask[]): WaitingTask[] =>
  waiting.filter((task) => !taken.some((one) => isSame(one, task)));

/** `count` of those that may be drawn in a step, by what there is to learn from them; the oldest where nobody counts tries. */
export function drawAgain(
  waiting: readonly WaitingTask[],
  count: number,
  step: number,
  random: () => RandomStream,
): WaitingTask[] {
  const due = waiting.filter((task) => (task.due ?? 0) <= step);
  if (due.length <= count || due.every(({ tries }) => tries === undefined)) return due.slice(0, count);
  const stream = random();
  const drawn: WaitingTask[] = [];
  while (drawn.length < count) {
    const [task] = due.splice(stream.weighted(due.map(contrastOf)), 1);
    drawn.push(task!);
  }
  return drawn;
}

/** What a step has shown of its tasks. */
export interface Tried {
  /** Those that it did not draw. */
  waiting: readonly WaitingTask[];
  /** Those that it drew again. */
  again: readonly WaitingTask[];
  /** Those that fewer than half of their samples solved. */
  failed: readonly TaskRef[];
  /** Those that not all of their samples solved. */
  tried: readonly TriedTask[];
  step: number;
}

/**
 * Who waits after a step. `tries` is after how many a task is let go; absent, as in runs that began before there was such
 * a limit: what was failed waits again, without rest, and nothing else does.
 */
export function waitAgain(
  { waiting, again, failed, tried, step }: Tried,
  mostTries: number | undefined,
): WaitingTask[] {
  if (mostTries === undefined) return [...waiting, ...failed].slice(-MOST_FAILURES);
  const next = tried.flatMap((task): WaitingTask[] => {
    const { successes, trials } = task;
    const tries = (again.find((one) => isSame(one, task))?.tries ?? 0) + 1;
    if (tries >= mostTries) return [];
    const rest = isUnsolved(task) ? 2 ** tries : 0;
    return [{ ...taskRefOf(task), successes, trials, tries, due: step + 1 + rest }];
  });
  const all = [...waiting, ...next];
  const kept = new Set([
    ...all.filter(isUnsolved).slice(-KEPT_OF_EACH),
    ...all.filter((task) => !isUnsolved(task)).slice(-KEPT_OF_EACH),
  ]);
  return all.filter((task) => kept.has(task));
}
