/** A turn without the token that ended it. */
export function withoutEnd(text: string, ends: readonly string[]): string {
  const end = ends.find((token) => text.endsWith(token));
  return end === undefined ? text : text.slice(0, -end.length);
}

/** A turn as it was sampled, with the first of its end tokens where it has none. */
export const withEnd = (text: string, ends: readonly string[]): string =>
  ends.some((end) => text.endsWith(end)) ? text : text + ends[0]!;
