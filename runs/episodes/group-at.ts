import type { RolloutGroup } from '../../core/episode/episode.ts';
import { rolloutsPrefix } from '../../store/keys.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';
import { findTrajectories } from '../../store/rollout/trajectories.ts';
import type { Place } from './place.ts';
import { groupsIn } from './stored-groups.ts';
import type { StepFolder } from './stored-groups.ts';

/** Where the groups of a step lie. Throws GradusError('store', 'invalid-key') for names that are none. */
export const stepFolder = (run: string, stage: string, step: number): StepFolder => ({
  stage,
  step,
  folder: `${rolloutsPrefix(run, stage)}${String(step).padStart(6, '0')}/`,
});

/** A group as it counted in its step, and the number of the step's last one; null where there is no such group. */
export async function readGroupAt(
  store: ObjectStore,
  { run, stage, step, group }: Omit<Place, 'episode'>,
): Promise<{ group: RolloutGroup; last: number } | null> {
  const groups = await groupsIn(store, stepFolder(run, stage, step).folder);
  const found = groups.find((one) => one.group === group);
  const trajectories = found && (await findTrajectories(store, found.key));
  return trajectories ? { group: trajectories, last: groups.at(-1)!.group } : null;
}
