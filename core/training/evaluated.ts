import type { TaskRef } from '../refs.ts';
import { armName } from '../names.ts';
import { meanOfTasks } from '../statistics/pass-at-k.ts';
import type { Mean } from '../statistics/intervals.ts';
import { pairedDifference } from '../statistics/paired-difference.ts';

// What an evaluation keeps of each sample, and what follows from it.

/** A sample of a task. `solved` is null where it cannot be said; `tokens` are those after the prompt. */
export interface SampleFacts {
  solved: boolean | null;
  turns: number;
  tokens: number;
}

export interface TaskSamples extends TaskRef {
  samples: SampleFacts[];
}

const judged = ({ samples }: TaskSamples): SampleFacts[] => samples.filter(({ solved }) => solved !== null);

const share = (samples: readonly SampleFacts[], counts: (sample: SampleFacts) => boolean): number =>
  samples.filter(counts).length / samples.length;

/** Success with at most so many turns or tokens; `n` is the number of tasks. */
export interface SuccessWithin extends Mean {
  most: number;
}

/**
 * Success over what an episode may take. A limit cuts an episode and changes nothing before that, so an episode that was
 * solved with so many turns, or tokens after its prompt, is solved wherever as many are allowed, and a cut one is no success.
 */
export function successWithin(
  tasks: readonly TaskSamples[],
  what: 'turns' | 'tokens',
  limits: readonly number[],
  confidence: number,
): SuccessWithin[] {
  const known = tasks.map(judged).filter(({ length }) => length > 0);
  return limits.flatMap((most) => {
    const mean = meanOfTasks(
      known.map((samples) => share(samples, (one) => one.solved === true && one[what] <= most)),
      confidence,
    );
    return mean === null ? [] : [{ most, ...mean }];
  });
}

/** 1, 2, 4, … and the most there can be. */
export function doublings(least: number, most: number): number[] {
  const limits: number[] = [];
  for (let one = least; one < most; one *= 2) limits.push(one);
  return [...limits, most];
}

export interface Difference extends Mean {
  /** Tasks that the first solved more often, the second, and both as often. */
  first: number;
  second: number;
  equal: number;
}

/**
 * Success of the first less that of the second, task by task: the mean over the tasks of which both have a judged sample,
 * with its interval. null where there is no such task.
 */
export function differenceOf(
  first: readonly TaskSamples[],
  second: readonly TaskSamples[],
  confidence: number,
): Difference | null {
  const others = new Map(second.map((task) => [nameOf(task), judged(task)]));
  const differences = first.flatMap((task) => {
    const [own, other] = [judged(task), others.get(nameOf(task)) ?? []];
    if (own.length === 0 || other.length === 0) return [];
    return [share(own, ({ solved }) => solved === true) - share(other, ({ solved }) => solved === true)];
  });
  const mean = pairedDifference(differences, confidence);
  return (
    mean && {
      ...mean,
      first: differences.filter((one) => one > 0).length,
      second: differences.filter((one) => one < 0).length,
      equal: differences.filter((one) => one === 0).length,
    }
  );
}

const nameOf = (task: TaskRef): string => `${armName(task)}/${task.split}/${task.index}`;
