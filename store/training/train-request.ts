import { z } from 'zod';
import type { BlobRef, CheckpointRef } from '../../core/refs.ts';
import type { TrainRequest } from '../../core/requests/learner.ts';
import { jsonCodec } from '../codec.ts';
import type { CallOptions, ObjectStore } from '../objects/object-store.ts';
import { blobRef, checkpointRef } from './manifest.ts';
import type { CheckpointManifest } from './manifest.ts';

/**
 * In a checkpoint without the optimizer's moments: the step that made it, by which they are made again. It is no part of the
 * policy.
 */
export const TRAIN_REQUEST = 'train_request.json';

const requests = jsonCodec<TrainRequest>(
  'the request of a learner step',
  z.looseObject({
    run: z.string(),
    stage: z.string(),
    step: z.int().positive(),
    parent: checkpointRef,
    batch: blobRef,
    resetOptimizer: z.boolean(),
    reference: checkpointRef.nullable(),
  }),
);

export const encodeTrainRequest = (request: TrainRequest): Uint8Array =>
  new TextEncoder().encode(JSON.stringify(request));

/** The step that makes a checkpoint's moments again; undefined where it has them, or has none because nothing was updated. */
export async function trainRequestOf(
  store: ObjectStore,
  { files }: CheckpointManifest,
  options: CallOptions = {},
): Promise<TrainRequest | undefined> {
  const ref: BlobRef | undefined = files[TRAIN_REQUEST];
  return ref && store.read(ref, requests, options);
}

/** What a step reads besides its parent's weights and its batch: all of it must be there for the step to be made again. */
export const checkpointsReadBy = ({ parent, reference, teachers = [] }: TrainRequest): CheckpointRef[] => [
  parent,
  ...(reference ? [reference] : []),
  ...teachers,
];
