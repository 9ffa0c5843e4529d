/** The type of the abstention that stands for attempts that came to nothing. */
export const LOST = 'lost';

/** Of people, when the time was up before enough of them had answered. */
export const DEADLINE = 'deadline';

/** Of people, when the review was taken back. */
export const WITHDRAWN = 'withdrawn';

/**
 * Abstentions that say something of the moment and nothing of the subject. They hold for the run that heard them, so
 * that it does not ask again at every step; another run, or a sweep, asks anew.
 */
const PASSING: readonly string[] = [LOST, DEADLINE, WITHDRAWN, 'crashed', 'time-limit'];

export const isTransientAbstention = (type: string): boolean => PASSING.includes(type);
