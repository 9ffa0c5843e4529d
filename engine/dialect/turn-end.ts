/** A turn without the token that ended it. */
export function withoutEnd(text: string, ends: readonly string[]): string {
  const end = ends.find((token) => text.endsWith(token));
  return end === undefined ? text : text.slice(0, -end.length);
}
