import { rolloutsPrefix, takenKey, takenPrefix } from '../keys.ts';
import { inParallel } from '../in-parallel.ts';
import type { CallOptions, ObjectStore } from '../objects/object-store.ts';
import { rolloutKeys } from '../rollout/trajectories.ts';
import { doneSteps } from './step-facts.ts';
import { takenRollouts } from './taken-groups.ts';

/** The step whose tasks a group of a stage has. */
export const stepOfRollout = (run: string, stage: string, key: string): number =>
  Number.parseInt(key.slice(rolloutsPrefix(run, stage).length), 10);

/**
 * As `rolloutKeys`, of the steps that are done. A stage that collects ahead and ends, or is stopped in the middle of a step,
 * leaves groups of other steps besides, as many as it had time for.
 */
export async function doneRolloutKeys(
  store: ObjectStore,
  run: string,
  stage: string,
  options: CallOptions = {},
): Promise<string[]> {
  const keys = await rolloutKeys(store, run, stage, options);
  const done = new Set(await doneSteps(store, run, stage, options));
  const journal = new Set((await store.list(takenPrefix(run, stage), options)).map(({ key }) => key));
  if (journal.size === 0) return keys.filter((key) => done.has(stepOfRollout(run, stage, key)));
  // A step of an asynchronous stage takes groups of other steps.
  const steps = [...done].filter((step) => journal.has(takenKey(run, stage, step)));
  const taken = await inParallel(steps, (step) => takenRollouts(store, { run, stage, step }, options));
  const names = new Set(taken.flatMap((of) => of ?? []));
  return keys.filter((key) => names.has(key));
}
