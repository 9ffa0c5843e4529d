import { z } from 'zod';
import type { StoredChange } from '../../core/run-change.ts';
import { jsonCodec } from '../codec.ts';
import { changeKey, changesPrefix } from '../keys.ts';
import type { CallOptions, ObjectStore } from '../objects/object-store.ts';

const FORMAT = 'gradus.change/1';

const limit = z.number().nullable().optional();

const changes = jsonCodec<StoredChange & { format: string }>(
  'a change of a run',
  z.looseObject({
    format: z.literal(FORMAT),
    number: z.int(),
    after: z.int(),
    update: z.string(),
    at: z.string(),
    stage: z.string(),
    step: z.int().nullable(),
    budgets: z
      .record(z.string(), z.looseObject({ count: limit, seconds: limit, usd: limit, perStep: limit }))
      .optional(),
    maxSteps: z.record(z.string(), z.int()).optional(),
    reason: z.string().optional(),
  }),
);

/**
 * Keeps a change under its number, or the next one that is free: where a run was reset, what it had changed before stays
 * in its record. First writer wins: the same update is one change, and what an earlier attempt has kept is returned.
 */
export async function putChange(
  store: ObjectStore,
  run: string,
  made: StoredChange,
  options: CallOptions = {},
): Promise<StoredChange> {
  for (let { number } = made; ; number++) {
    const wanted = { format: FORMAT, ...made, number };
    const { value } = await store.putIfAbsent(changeKey(run, number), changes, wanted, options);
    if (value.update === made.update) return withoutFormat(value);
  }
}

/** What people have changed of a run, in the order in which they did. */
export async function readChanges(
  store: ObjectStore,
  run: string,
  options: CallOptions = {},
): Promise<StoredChange[]> {
  const keys = (await store.list(changesPrefix(run), options)).map(({ key }) => key);
  const found = await Promise.all(keys.map((key) => store.find(key, changes, options)));
  return found
    .flatMap((one) => one ?? [])
    .map(withoutFormat)
    .toSorted((a, b) => a.number - b.number);
}

function withoutFormat(stored: StoredChange & { format: string }): StoredChange {
  const { format: _, ...made } = stored;
  return made;
}
