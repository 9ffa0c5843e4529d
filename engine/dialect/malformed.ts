import type { Action, Observation } from '../../core/episode/episode.ts';

/** A turn that does not parse; `reason` tells the policy what was wrong. */
export function malformed(reason: string): Extract<Action, { kind: 'malformed' }> {
  return { kind: 'malformed', reason };
}

/** A turn with more calls than one may have. */
export const tooManyCalls = (most: number): Extract<Action, { kind: 'malformed' }> =>
  malformed(most === 1 ? 'one call a turn' : `at most ${most} calls a turn`);

/** What the policy reads after a malformed turn. */
export function malformedObservation(reason: string): Observation {
  return { text: `error: ${reason}`, error: 'malformed-call' };
}
