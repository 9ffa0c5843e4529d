// This folder has what workflows ask of activities and of each other: references and small facts, never tokens or weights.

/** Wall time that an activity spent on one part of the work, epoch milliseconds. */
export interface Span {
  part: 'rollout' | 'tool' | 'verification' | 'learner' | 'data';
  start: number;
  end: number;
}
