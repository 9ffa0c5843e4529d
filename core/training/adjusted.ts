import type { Objective } from '../algorithms/objective.ts';
import type { Adjusted } from '../diagnosis/act.ts';
import type { SamplingSpec } from '../spec.ts';

// A stage's spec, as its steps carry it out after alarms.

export const adjustedSampling = (
  sampling: SamplingSpec,
  { temperatureFactor }: Pick<Adjusted, 'temperatureFactor'>,
): SamplingSpec => ({ ...sampling, temperature: sampling.temperature * temperatureFactor });

/** Log-probs are those of the temperature that sampled. */
export const adjustedObjective = (
  objective: Objective,
  { temperatureFactor }: Pick<Adjusted, 'temperatureFactor'>,
): Objective =>
  'temperature' in objective
    ? { ...objective, temperature: objective.temperature * temperatureFactor }
    : objective;
