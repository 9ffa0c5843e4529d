import type { Place } from '../observe/place.ts';

// Where pages are. Names are of the store's own alphabet, and what is not (a workflow's id, a verifier) is encoded.

const at = (...parts: readonly (string | number)[]): string =>
  `/${parts.map((part) => encodeURIComponent(String(part))).join('/')}`;

export const runAt = (run: string): string => at('runs', run);

export const stepAt = ({ run, stage, step }: Pick<Place, 'run' | 'stage' | 'step'>): string =>
  `${runAt(run)}${at('steps', stage, step)}`;

export const groupAt = ({ run, stage, step, group }: Omit<Place, 'episode'>): string =>
  `${runAt(run)}${at('groups', stage, step, group)}`;

export const episodeAt = ({ run, stage, step, group, episode }: Place): string =>
  `${runAt(run)}${at('episodes', stage, step, group, episode)}`;
