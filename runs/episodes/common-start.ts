/** How many of their first elements all of the lists have in common. */
export function commonStart(lists: readonly (readonly number[])[]): number {
  const [first, ...others] = lists;
  if (!first || others.length === 0) return 0;
  const at = first.findIndex((one, i) => others.some((other) => i >= other.length || other[i] !== one));
  return at < 0 ? Math.min(...lists.map(({ length }) => length)) : at;
}
