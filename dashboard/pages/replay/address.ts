import type { Place } from '../../../runs/episodes/place.ts';
import { episodeAt } from '../../address.ts';

/** What of a result is looked at, and what the form of a fork begins with: all of it is in the address. */
export interface ReplayView {
  job: number | null;
  /** From 1. */
  turn: number | null;
  at: string;
  token: string;
}

export const replayAt = (place: Place): string => `${episodeAt(place)}/replay`;
export const jobAt = (place: Place, job: number): string => `${replayAt(place)}?job=${job}`;
