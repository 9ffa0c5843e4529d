import type { CheckpointRef } from '../refs.ts';
import { WINDOW } from './series.ts';

/** A measured checkpoint of a stage that had no alarm then. */
interface Place {
  checkpoint: CheckpointRef;
  stageStep: number;
}

/**
 * Where a roll-back goes. What an alarm speaks of began up to a window of steps before it, so a checkpoint counts as
 * healthy when a window of steps without an alarm lies behind it: `sure` is one, `candidate` a younger one that may become one. Both must be kept.
 */
export interface Healthy {
  sure: Place | null;
  candidate: Place | null;
}

export const noneHealthy = (): Healthy => ({ sure: null, candidate: null });

/** After a step in which an alarm stands: what is too young by then never had a window without one behind it. */
export const alarmed = ({ sure, candidate }: Healthy, stageStep: number): Healthy =>
  candidate !== null && isOld(candidate, stageStep)
    ? { sure: candidate, candidate: null }
    : { sure, candidate: null };

/** After a measurement in which none stands. */
export function withMeasurement({ sure, candidate }: Healthy, place: Place): Healthy {
  if (candidate === null) return { sure, candidate: place };
  return isOld(candidate, place.stageStep) ? { sure: candidate, candidate: place } : { sure, candidate };
}

const isOld = (place: Place, stageStep: number): boolean => stageStep - place.stageStep >= WINDOW;

/** The last healthy place at an alarm of this step; null where there is none. */
export const lastHealthy = ({ sure, candidate }: Healthy, stageStep: number): Place | null =>
  candidate !== null && isOld(candidate, stageStep) ? candidate : sure;

/** Checkpoints that a roll-back may go to. */
export const placesOf = ({ sure, candidate }: Healthy): CheckpointRef[] =>
  [sure, candidate].flatMap((place) => place?.checkpoint ?? []);

/** After a roll-back: nothing younger than where it went to is healthy. */
export const afterRollback = ({ sure, candidate }: Healthy, target: CheckpointRef): Healthy =>
  candidate?.checkpoint.manifest.key === target.manifest.key
    ? { sure: candidate, candidate: null }
    : { sure, candidate: null };
