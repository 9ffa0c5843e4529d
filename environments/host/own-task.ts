import type { Task } from '../contract/environment.ts';

/** A task for one function: what it changes in it no other episode of the task is to see. */
export const ownTask = ({ info, ...task }: Task): Task => ({
  ...task,
  ref: { ...task.ref },
  ...(info !== undefined && { info: structuredClone(info) }),
});
