/** Groups in the order of their first member, each in the order given. */
export function groupBy<T, Key>(all: readonly T[], key: (one: T) => Key): Map<Key, T[]> {
  const groups = new Map<Key, T[]>();
  for (const one of all) {
    const of = key(one);
    const group = groups.get(of);
    if (group) group.push(one);
    else groups.set(of, [one]);
  }
  return groups;
}
