import { closest, distance } from 'fastest-levenshtein';

/** What is longer is near to no name. */
const LONGEST_NAME = 200;

/** The nearest name, as the end of a message; empty where none is within `most` letters. */
export function suggestion(
  name: string,
  valid: readonly string[],
  most = Math.max(2, name.length / 3),
): string {
  if (valid.length === 0 || name.length > LONGEST_NAME) return '';
  const nearest = closest(name, [...valid]);
  const near = distance(name.toLowerCase(), nearest.toLowerCase()) <= most;
  const meant = near ? nearest : shortened(name, valid);
  return meant === undefined ? '' : `; did you mean "${meant}"?`;
}

const SHORTEST_BEGINNING = 3;

/** The one name that begins so: `async` is `asynchronous`. */
function shortened(name: string, valid: readonly string[]): string | undefined {
  if (name.length < SHORTEST_BEGINNING) return undefined;
  const longer = valid.filter((one) => one.toLowerCase().startsWith(name.toLowerCase()));
  return longer.length === 1 ? longer[0] : undefined;
}

/** The nearest name, and all where none is near. */
export function didYouMean(name: string, valid: readonly string[]): string {
  if (valid.length === 0) return '';
  return suggestion(name, valid) || `; valid: ${valid.join(', ')}`;
}
