import type { Place } from '../../runs/episodes/place.ts';
import { episodeAt, groupAddress, runAt, stepAt } from '../address.ts';

/** The way to a page of an episode, the episode's own included. */
export const crumbsOfEpisode = (place: Place): { href: string; label: string }[] => [
  { href: '/', label: 'Runs' },
  { href: runAt(place.run), label: place.run },
  { href: stepAt(place), label: `${place.stage}, step ${place.step}` },
  { href: groupAddress(place), label: `group ${place.group}` },
  { href: episodeAt(place), label: `episode ${place.episode}` },
];
