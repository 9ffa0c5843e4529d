import { closest, distance } from 'fastest-levenshtein';

/** A name can have a thousand characters. */
const SHOWN = 100;

/** A name that is none of those that there are: with the nearest of them, if it is near, and all. */
export function nearest(name: string, names: readonly string[]): string {
  const best = closest(name, names);
  const near = distance(name.toLowerCase(), best.toLowerCase()) <= Math.max(2, name.length / 3);
  return `${JSON.stringify(name.slice(0, SHOWN))}${near ? `; did you mean "${best}"?` : '.'} There are: ${names.join(', ')}`;
}
