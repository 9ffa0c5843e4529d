import type { Place } from '../runs/episodes/place.ts';

// Where pages are. Names are of the store's own alphabet, and what is not (a workflow's id, a verifier) is encoded.

const at = (...parts: readonly (string | number)[]): string =>
  `/${parts.map((part) => encodeURIComponent(String(part))).join('/')}`;

export const runAt = (run: string): string => at('runs', run);

export const stepAt = ({ run, stage, step }: Pick<Place, 'run' | 'stage' | 'step'>): string =>
  `${runAt(run)}${at('steps', stage, step)}`;

export const groupAddress = ({ run, stage, step, group }: Omit<Place, 'episode'>): string =>
  `${runAt(run)}${at('groups', stage, step, group)}`;

export const episodeAt = ({ run, stage, step, group, episode }: Place): string =>
  `${runAt(run)}${at('episodes', stage, step, group, episode)}`;

export const ladderAt = (run: string): string => `${runAt(run)}${at('ladder')}`;

/** What a verifier was asked about, by its digest. */
export const candidateAt = (run: string, verifier: string, digest: string): string =>
  `${runAt(run)}${at('candidates', verifier, digest)}`;

/** Open reviews that a run has asked for, and where those that nobody waits for are closed. */
export const reviewsOf = (run: string): string => `/reviews?run=${encodeURIComponent(run)}`;
export const closeAllAt = (run: string): string => `/reviews-of/${encodeURIComponent(run)}/close`;

/** A review, by the id of its workflow. */
export const reviewAt = (id: string): string => at('reviews', id);

/** A drawing of a subject that is shown. */
export const drawingAt = (key: string, block: number): string => at('drawings', key, block);

/** The samples of one task of a group: that of an episode. */
export const taskAt = ({ episode, ...place }: Place): string => `${groupAddress(place)}?episode=${episode}`;

/** What a step would have taught by another reward. */
export const reweighAt = ({ run, stage, step }: Pick<Place, 'run' | 'stage' | 'step'>): string =>
  `${runAt(run)}${at('reweigh', stage, step)}`;
