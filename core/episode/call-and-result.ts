import { canonicalJson } from '../json/canonical-json.ts';
import type { Turn } from './episode.ts';

/**
 * A turn's one call and what it returned, as one text; null of any other turn. A call repeats an earlier one where
 * these are equal: `right` at two squares of a board is the same call twice, and no repetition.
 */
export function callAndResult({ action, observation }: Turn): string | null {
  if (action.kind !== 'call') return null;
  const { name, arguments: args } = action.call;
  const { text = '', images = [] } = observation ?? {};
  return canonicalJson([name, args, text, images.map(({ sha256 }) => sha256)]);
}
