import type { Json } from '../json/json.ts';
import { armName } from '../names.ts';
import type { BlobRef, TaskRef } from '../refs.ts';
import type { Arm } from '../schema/tasks.ts';

// Tasks that a policy has made, or that were made of others. A source never changes: with the tasks of a step more it is another one, under another
// digest, so that a place in it means the same task for ever.

export interface MadeTask {
  proposal: Json;
  /** Equal for two that are the same task. */
  canonical: string;
  /** Of the stage, from 1: when it was made; 0: before its first step. */
  step: number;
  /** The failed task that it is a variation of, and what the critic expected of it; absent of others. */
  of?: TaskRef;
  value?: number;
}

export interface TaskSource {
  /** By the arm whose tasks they are, oldest first. */
  arms: Record<string, MadeTask[]>;
}

/** What a stage carries of its source. */
export interface MadeTasks {
  /** null: nothing has been made yet. */
  source: BlobRef | null;
  /** How many there are, by arm. */
  counts: Record<string, number>;
}

export const noTasksMade = (): MadeTasks => ({ source: null, counts: {} });

export const countsOf = ({ arms }: TaskSource): Record<string, number> =>
  Object.fromEntries(Object.entries(arms).map(([arm, tasks]) => [arm, tasks.length]));

/** A task that a step has made. */
export interface NewTask extends MadeTask {
  arm: Arm;
}

/** The source with more tasks, at most so many of each arm: the oldest are dropped. */
export function withTasks(source: TaskSource, added: readonly NewTask[], mostTasks: number): TaskSource {
  const arms = { ...source.arms };
  for (const { arm, ...task } of added) {
    const name = armName(arm);
    arms[name] = [...(arms[name] ?? []), task];
  }
  for (const [name, tasks] of Object.entries(arms)) arms[name] = tasks.slice(-mostTasks);
  return { arms };
}
