import type { Place } from '../../runs/episodes/place.ts';
import { episodeAt, groupAddress, runAt, stepAt } from '../address.ts';
import type { Crumb } from '../layout.tsx';

/** The way to what is within a run, the run's own page included. */
export const crumbsOfRun = (run: string): Crumb[] => [
  { href: '/', label: 'Runs' },
  { href: runAt(run), label: run },
];

/** Likewise within a step. */
export const crumbsOfStep = (place: Pick<Place, 'run' | 'stage' | 'step'>): Crumb[] => [
  ...crumbsOfRun(place.run),
  { href: stepAt(place), label: `${place.stage}, step ${place.step}` },
];

/** Likewise within an episode. */
export const crumbsOfEpisode = (place: Place): Crumb[] => [
  ...crumbsOfStep(place),
  { href: groupAddress(place), label: `group ${place.group}` },
  { href: episodeAt(place), label: `episode ${place.episode}` },
];
