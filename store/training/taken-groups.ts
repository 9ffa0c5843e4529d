import { z } from 'zod';
import type { TakenGroups, TakeRequest } from '../../core/requests/collect.ts';
import { jsonCodec } from '../codec.ts';
import { groupId } from '../../core/names.ts';
import { rolloutKey, takenKey } from '../keys.ts';
import type { CallOptions, ObjectStore } from '../objects/object-store.ts';

const taken = jsonCodec<TakenGroups>(
  'the groups that a step has taken',
  z.looseObject({
    groups: z.array(
      z.looseObject({
        step: z.int(),
        group: z.int(),
        firstTask: z.int(),
        tasks: z.array(
          z.looseObject({ environment: z.string(), split: z.string(), level: z.int(), index: z.int() }),
        ),
        retries: z.int(),
        again: z.array(z.looseObject({ index: z.int() })),
        begunAfter: z.int(),
      }),
    ),
    givenUp: z.literal(true).optional(),
  }),
);

/**
 * Keeps which groups a step takes; first writer wins, and what is kept is returned. Of a run that follows another one it is
 * what that one has taken. null where nothing is kept and nothing is wanted, and where the run that is followed went no
 * further.
 */
export async function takeGroups(
  store: ObjectStore,
  { run, stage, step, follow, wanted }: TakeRequest,
  options: CallOptions = {},
): Promise<TakenGroups | null> {
  const key = takenKey(run, stage, step);
  const before = await store.find(key, taken, options);
  if (before !== null) return before;
  const followed =
    follow === undefined ? null : await store.find(takenKey(follow, stage, step), taken, options);
  const first = followed ?? wanted;
  return first === null ? null : (await store.putIfAbsent(key, taken, first, options)).value;
}

/**
 * Where the trajectories of the groups that a step has taken may lie, in the order in which it learned from them: those of
 * each group, and then its baselines or corrections. null of a stage that is not asynchronous.
 */
export async function takenRollouts(
  store: ObjectStore,
  { run, stage, step }: Pick<TakeRequest, 'run' | 'stage' | 'step'>,
  options: CallOptions = {},
): Promise<string[] | null> {
  const found = await store.find(takenKey(run, stage, step), taken, options);
  if (found === null) return null;
  const at = (more: number) =>
    found.groups.map((one) => rolloutKey(run, stage, one.step, groupId(one.group + more)));
  return [...at(0), ...at(1)];
}
