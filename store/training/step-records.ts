import { z } from 'zod';
import type { TrainResult } from '../../core/requests/learner.ts';
import { jsonCodec } from '../codec.ts';
import { checkpointRef } from './manifest.ts';

/** A learner step as it counts. */
export interface StepRecord extends Pick<TrainResult, 'checkpoint' | 'metrics' | 'backend'> {
  stage: string;
  step: number;
}

export const stepRecords = jsonCodec<StepRecord>(
  'the record of a learner step',
  z.looseObject({
    step: z.int(),
    metrics: z.looseObject({ loss: z.number().nullable() }),
    checkpoint: checkpointRef,
    backend: z.string(),
  }),
);
