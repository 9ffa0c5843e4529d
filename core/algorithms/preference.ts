import { z } from 'zod';
import { dpo, dpoLossSchema, dpoObjective, refuseDpo } from './dpo.ts';
import { kto, ktoLossSchema, ktoObjective, refuseKto } from './kto.ts';
import { USUAL_LEARNING_RATE } from './method.ts';
import type { DpoObjective, KtoObjective } from './objective.ts';

// Preferences that a person gives: the losses of the methods of an rl stage, without their making of pairs.

export const preferenceSchema = z.discriminatedUnion('kind', [dpoLossSchema, ktoLossSchema]);

export type PreferenceSpec = z.output<typeof preferenceSchema>;

/** Nobody has sampled what is given, so its log-probs are those of the model itself. */
const AS_GIVEN = { temperature: 1, topK: 0 };

export const preferenceObjective = (spec: PreferenceSpec): DpoObjective | KtoObjective =>
  spec.kind === 'dpo' ? dpoObjective(spec, AS_GIVEN) : ktoObjective(spec, AS_GIVEN);

export const refusePreference = (spec: PreferenceSpec): { field: string; message: string }[] =>
  spec.kind === 'dpo' ? refuseDpo(spec) : refuseKto(spec);

/** Of a stage that says none: that of the method. */
export const preferenceLearningRate = ({ kind }: PreferenceSpec): number =>
  (kind === 'dpo' ? dpo : kto).learningRate ?? USUAL_LEARNING_RATE;
