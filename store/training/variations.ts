import { z } from 'zod';
import type { RolloutGroup } from '../../core/episode/episode.ts';
import type { BlobRef } from '../../core/refs.ts';
import type { CheckedVariations, VariedTasks } from '../../core/training/from-failures.ts';
import { jsonCodec } from '../codec.ts';
import { referencesKey, variationsKey } from '../keys.ts';
import type { CallOptions, ObjectStore, StoredObject } from '../objects/object-store.ts';
import { putTrajectoriesAt } from '../rollout/trajectories.ts';

/** As it lies in the store, with the episodes of the reference solutions. */
export interface StoredVariations extends CheckedVariations {
  references: BlobRef | null;
}

const blobRef = z.looseObject({ key: z.string() });
const checkedVariations = jsonCodec<StoredVariations>(
  'what was said of the variations of failed tasks',
  z.looseObject({
    failed: z.array(
      z.looseObject({ variations: z.array(z.looseObject({ kind: z.string() })), trials: z.int() }),
    ),
    tasks: z.array(z.looseObject({ proposal: z.json(), canonical: z.string() })),
    references: blobRef.nullable(),
    critic: z.boolean(),
  }),
);

export interface StoredVaried extends VariedTasks {
  /** What the critic expects of the first state of each that is a task; null where nobody filtered. */
  values: number[] | null;
}

const keptVariations = jsonCodec<StoredVaried>(
  'the variations of failed tasks that a stage draws',
  z.looseObject({
    source: blobRef.nullable(),
    counts: z.record(z.string(), z.int()),
    facts: z.looseObject({ kept: z.int() }),
    values: z.array(z.number()).nullable(),
  }),
);

interface StagePlace {
  run: string;
  stage: string;
}

/** What was said before, with where it lies; null where nobody has looked yet. */
export async function findChecked(
  store: ObjectStore,
  { run, stage }: StagePlace,
  options: CallOptions = {},
): Promise<StoredObject<StoredVariations> | null> {
  const ref = await store.head(variationsKey(run, stage, 'checked'), options);
  return ref ? { ref, value: await store.read(ref, checkedVariations, options) } : null;
}

/** First writer wins, as of what follows; what is kept is returned. */
export const putChecked = (
  store: ObjectStore,
  { run, stage }: StagePlace,
  wanted: StoredVariations,
  options: CallOptions = {},
): Promise<StoredObject<StoredVariations>> =>
  store.putIfAbsent(variationsKey(run, stage, 'checked'), checkedVariations, wanted, options);

export const readChecked = (
  store: ObjectStore,
  ref: BlobRef,
  options: CallOptions = {},
): Promise<StoredVariations> => store.read(ref, checkedVariations, options);

export const putReferences = async (
  store: ObjectStore,
  { run, stage }: StagePlace,
  group: RolloutGroup,
  options: CallOptions = {},
): Promise<BlobRef> => (await putTrajectoriesAt(store, referencesKey(run, stage), group, options)).ref;

export async function putVaried(
  store: ObjectStore,
  { run, stage }: StagePlace,
  wanted: StoredVaried,
  options: CallOptions = {},
): Promise<StoredVaried> {
  return (await store.putIfAbsent(variationsKey(run, stage, 'kept'), keptVariations, wanted, options)).value;
}
