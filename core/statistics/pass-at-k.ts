import { wilson } from './intervals.ts';
import type { Mean } from './intervals.ts';

/** Tasks by how often they were solved: `2/5` → the number of tasks that two of five samples solved. */
export type Tries = Record<string, number>;

export const triesOf = (solved: number, samples: number): string => `${solved}/${samples}`;

/** The tasks of which at least `k` samples were judged, each with what `of` makes of it. */
function perTask(tries: Tries, k: number, of: (solved: number, samples: number) => number): number[] {
  return Object.entries(tries).flatMap(([name, tasks]) => {
    const [solved, samples] = name.split('/').map(Number) as [number, number];
    return samples < k ? [] : Array.from({ length: tasks }, () => of(solved, samples));
  });
}

/** C(n − c, k) / C(n, k): the chance that none of k samples out of n, c of which are right, is right. */
function chanceOfNone(right: number, samples: number, k: number): number {
  let chance = 1;
  for (let i = 0; i < k; i++) chance *= Math.max(0, samples - right - i) / (samples - i);
  return chance;
}

/**
 * A mean over tasks of chances, with Wilson's interval of as many trials as there are tasks: a figure in [0, 1] scatters
 * no more than a success of the same mean. null where there is no task.
 */
export function meanOfTasks(chances: readonly number[], confidence: number): Mean | null {
  const n = chances.length;
  if (n === 0) return null;
  const successes = chances.reduce((sum, chance) => sum + chance, 0);
  return { mean: successes / n, n, ...wilson({ successes, trials: n }, confidence) };
}

/**
 * pass@k: the chance that at least one of k samples of a task solves it, estimated without bias from n ≥ k samples of
 * each task (Chen et al. 2021, arXiv 2107.03374, eq. 1), as a mean over the tasks that have k judged samples.
 */
export const passAtK = (tries: Tries, k: number, confidence: number): Mean | null =>
  meanOfTasks(
    perTask(tries, k, (solved, samples) => 1 - chanceOfNone(solved, samples, k)),
    confidence,
  );

/** pass^k: the chance that all of k samples solve it, C(c, k) / C(n, k) (tau-bench, Yao et al. 2024, arXiv 2406.12045). */
export const passHatK = (tries: Tries, k: number, confidence: number): Mean | null =>
  meanOfTasks(
    perTask(tries, k, (solved, samples) => chanceOfNone(samples - solved, samples, k)),
    confidence,
  );
