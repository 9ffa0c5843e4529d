import type { Objective } from '../algorithms/objective.ts';
import type { Adjusted } from '../diagnosis/act.ts';
import type { SamplingSpec } from '../schema/sampling.ts';
import type { RlStageSpec } from '../schema/stages/rl.ts';

/** A learner's program belongs to one temperature, so a schedule has as many different ones at most, and its last. */
const MOST_TEMPERATURES = 20;

/**
 * How a stage samples what it learns from at a step, from 1: the temperature is that of `sampling`, or goes in a straight
 * line from one to another and stays there, and alarms have raised it by a factor. Evaluations sample as `sampling` says.
 */
export function samplingAt(
  { exploration }: Pick<RlStageSpec, 'exploration'>,
  sampling: SamplingSpec,
  step: number,
  { temperatureFactor }: Pick<Adjusted, 'temperatureFactor'>,
): SamplingSpec {
  const schedule = exploration?.temperature;
  const plain = schedule ? onLine(schedule, step) : sampling.temperature;
  return { ...sampling, temperature: plain * temperatureFactor };
}

function onLine(
  { from, to, steps }: NonNullable<NonNullable<RlStageSpec['exploration']>['temperature']>,
  step: number,
): number {
  const done = Math.min(1, (step - 1) / steps);
  const level = Math.floor(done * MOST_TEMPERATURES) / MOST_TEMPERATURES;
  return from + level * (to - from);
}

/** Whether the temperature of this step is not yet the one that the stage goes on with, as its schedule says. */
export const temperatureMoves = ({ exploration }: Pick<RlStageSpec, 'exploration'>, step: number): boolean =>
  step <= (exploration?.temperature?.steps ?? 0);

/** The objective of a step: log-probs are those of the temperature that sampled. */
export const objectiveAt = (objective: Objective, { temperature }: SamplingSpec): Objective =>
  'temperature' in objective ? { ...objective, temperature } : objective;
