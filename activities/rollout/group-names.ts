import { ids } from '../../core/names.ts';
import type { Episode } from '../../core/episode/episode.ts';
import type { OpenGroup } from '../../core/requests/rollout.ts';
import { partKey } from '../../store/keys.ts';

// What the pieces of a group are called: in the store, and to its environments.

export const keyOf = ({ run, stage, step, group }: OpenGroup, name: string): string =>
  partKey(run, stage, step, group, name);

export const longName = ({ run, stage, step, group }: OpenGroup): string =>
  ids.group(run, stage, step, group);

export const episodeIndex = (
  request: Pick<OpenGroup, 'samples'>,
  { task, sample }: Pick<Episode, 'task' | 'sample'>,
): number => task * request.samples + sample;
