import { z } from 'zod';
import { GradusError } from '../../core/errors.ts';
import type { TakenGroups, TakeRequest } from '../../core/requests.ts';
import { jsonCodec } from '../codec.ts';
import { takenKey } from '../keys.ts';
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
 * what that one has taken. null where nothing is kept and nothing is wanted.
 * Throws GradusError('spec', 'not-taken') where the run that is followed went no further.
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
  if (follow !== undefined && followed === null)
    throw new GradusError(
      'spec',
      'not-taken',
      `${follow} has taken no groups in step ${step} of ${stage}, which this run makes again: it went no further, or its spec was another one`,
    );
  const first = followed ?? wanted;
  return first === null ? null : (await store.putIfAbsent(key, taken, first, options)).value;
}
