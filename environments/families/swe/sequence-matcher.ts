/**
 * How alike two texts are, in [0, 1]: twice the letters that they share over the letters that they have, where shared
 * is the longest common block, and then those left and right of it (Ratcliff & Obershelp 1988). The same figure as
 * `difflib.SequenceMatcher(None, a, b, autojunk=False).ratio()` of Python, over UTF-16 code units.
 */
export function ratio(a: string, b: string): number {
  if (a.length + b.length === 0) return 1;
  const places = new Map<string, number[]>();
  for (let j = 0; j < b.length; j++) {
    const found = places.get(b[j]!);
    if (found === undefined) places.set(b[j]!, [j]);
    else found.push(j);
  }
  let shared = 0;
  const open: [number, number, number, number][] = [[0, a.length, 0, b.length]];
  for (let part = open.pop(); part !== undefined; part = open.pop()) {
    const [aLow, aHigh, bLow, bHigh] = part;
    const [i, j, size] = longestMatch(a, places, part);
    if (size === 0) continue;
    shared += size;
    open.push([aLow, i, bLow, j], [i + size, aHigh, j + size, bHigh]);
  }
  return (2 * shared) / (a.length + b.length);
}

/** The longest common block within bounds: of several, the one that begins first in `a`, and then in `b`. */
function longestMatch(
  a: string,
  places: ReadonlyMap<string, readonly number[]>,
  [aLow, aHigh, bLow, bHigh]: readonly [number, number, number, number],
): [number, number, number] {
  let best: [number, number, number] = [aLow, bLow, 0];
  let lengths = new Map<number, number>();
  for (let i = aLow; i < aHigh; i++) {
    const next = new Map<number, number>();
    for (const j of places.get(a[i]!) ?? []) {
      if (j < bLow) continue;
      if (j >= bHigh) break;
      const size = (lengths.get(j - 1) ?? 0) + 1;
      next.set(j, size);
      if (size > best[2]) best = [i - size + 1, j - size + 1, size];
    }
    lengths = next;
  }
  return best;
}
