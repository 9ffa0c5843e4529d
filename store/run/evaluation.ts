import { z } from 'zod';
import type { CheckpointRef } from '../../core/refs.ts';
import type { EvaluationResult } from '../../core/requests/evaluation.ts';
import type { EvaluateSpec } from '../../core/schema/evaluate.ts';
import type { TaskSamples } from '../../core/training/evaluated.ts';
import { jsonCodec } from '../codec.ts';
import { evaluationKey } from '../keys.ts';
import type { CallOptions, ObjectStore, StoredObject } from '../objects/object-store.ts';

const FORMAT = 'gradus.evaluation/1';

/**
 * What an evaluation without a run came to. All of it follows from its spec, so that one that was interrupted and gone on
 * with leaves the same bytes.
 */
export interface StoredEvaluation {
  spec: EvaluateSpec;
  /** What was sampled from: the checkpoint of the spec, or a copy of it that speaks another dialect. */
  checkpoint: CheckpointRef;
  measured: Omit<EvaluationResult, 'spans' | 'incidents'>;
  /** In the order in which they were asked for; a task of a group that failed as a whole is left out. */
  tasks: TaskSamples[];
  /**
   * Where a tier judged: verdicts that it was asked for, those that were computed for it, and what these cost, seconds and US$.
   * The others were known. Unlike the rest this depends on what the store knew.
   */
  verdicts?: { asked: number; computed: number; seconds: number; usd: number };
}

const evaluations = jsonCodec<StoredEvaluation & { format: string }>(
  'an evaluation',
  z.looseObject({
    format: z.literal(FORMAT),
    spec: z.looseObject({ run: z.string(), evaluation: z.looseObject({}) }),
    checkpoint: z.looseObject({ weights: z.string() }),
    measured: z.looseObject({ arms: z.array(z.looseObject({})), outcomes: z.looseObject({}) }),
    verdicts: z
      .looseObject({ asked: z.int(), computed: z.int(), seconds: z.number(), usd: z.number() })
      .optional(),
    tasks: z.array(z.looseObject({ samples: z.array(z.looseObject({ turns: z.int(), tokens: z.int() })) })),
  }),
);

export const putEvaluation = (
  store: ObjectStore,
  evaluation: StoredEvaluation,
  options: CallOptions = {},
): Promise<StoredObject<StoredEvaluation>> =>
  store.putIfAbsent(
    evaluationKey(evaluation.spec.run),
    evaluations,
    { format: FORMAT, ...evaluation },
    options,
  );

/** By its name; null where there is none. */
export const findEvaluation = (
  store: ObjectStore,
  run: string,
  options: CallOptions = {},
): Promise<StoredEvaluation | null> => store.find(evaluationKey(run), evaluations, options);
