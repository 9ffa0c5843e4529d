// Where values that are JSON differ, by path, for two or more of them.

export interface Difference {
  /** `reward.components[format].weight`: a member of a list is called by its name, where all have one. */
  path: string;
  /** As JSON, one for each value; null where it has nothing there. */
  values: (string | null)[];
}

/** In the order in which the paths come, in the first value and then in the others. */
export function differencesOf(values: readonly unknown[]): Difference[] {
  const leaves = values.map((value) => leavesOf(value));
  const paths = new Set(leaves.flatMap((of) => [...of.keys()]));
  return [...paths].flatMap((path) => {
    const lines = leaves.map((of) => of.get(path) ?? null);
    return lines.every((one) => one === lines[0]) ? [] : [{ path, values: lines }];
  });
}

function leavesOf(value: unknown, path = '', into = new Map<string, string>()): Map<string, string> {
  if (value === undefined) return into;
  if (typeof value !== 'object' || value === null) return into.set(path, JSON.stringify(value));
  const parts = Array.isArray(value) ? membersOf(value) : fieldsOf(value);
  // Nothing in it is something, too.
  if (parts.length === 0) return into.set(path, Array.isArray(value) ? '[]' : '{}');
  for (const [part, inner] of parts)
    leavesOf(inner, path === '' ? part.replace(/^\./, '') : path + part, into);
  return into;
}

const fieldsOf = (value: object): [string, unknown][] =>
  Object.entries(value).map(([field, inner]) => [`.${field}`, inner]);

const NAMES = ['name', 'verifier', 'environment', 'kind'] as const;

function membersOf(list: readonly unknown[]): [string, unknown][] {
  for (const field of NAMES) {
    const names = list.map((one) => (one as Record<string, unknown> | null)?.[field]);
    if (new Set(names).size === list.length && names.every((name) => typeof name === 'string'))
      return list.map((one, i) => [`[${names[i] as string}]`, one]);
  }
  return list.map((one, i) => [`[${i}]`, one]);
}
