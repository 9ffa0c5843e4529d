// Where pages are. Names are of the store's own alphabet, and what is not (a workflow's id, a verifier) is encoded.

const at = (...parts: readonly (string | number)[]): string =>
  `/${parts.map((part) => encodeURIComponent(String(part))).join('/')}`;

/** One episode of a run: of an evaluation where `stage` is the name of one. */
export interface EpisodePlace {
  run: string;
  stage: string;
  step: number;
  group: number;
  /** Index into the group's episodes. */
  episode: number;
}

export const runAt = (run: string): string => at('runs', run);

export const stepAt = ({ run, stage, step }: Pick<EpisodePlace, 'run' | 'stage' | 'step'>): string =>
  `${runAt(run)}${at('steps', stage, step)}`;

export const groupAt = ({ run, stage, step, group }: Omit<EpisodePlace, 'episode'>): string =>
  `${runAt(run)}${at('groups', stage, step, group)}`;

export const episodeAt = ({ run, stage, step, group, episode }: EpisodePlace): string =>
  `${runAt(run)}${at('episodes', stage, step, group, episode)}`;
