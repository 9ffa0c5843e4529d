import type { PackedRows, SharedPlaces } from './row-packing.ts';

/** A part computes this many sixteenths of its places, so that there are few shapes. */
const SIZES = 16;

/** Orders sequences so that those of one prompt, which ends before the first token that counts, follow one another. */
export function byPrompt(
  tokens: Int32Array,
  offsets: Int32Array,
  mask: Float32Array,
  sequences: readonly number[],
): number[] {
  const prompts = new Map(
    sequences.map((sequence) => {
      const [start, end] = [offsets[sequence]!, offsets[sequence + 1]!];
      const counted = mask.subarray(start, end).indexOf(1);
      return [sequence, tokens.subarray(start, counted < 0 ? end : start + counted)];
    }),
  );
  const length = (sequence: number): number => offsets[sequence + 1]! - offsets[sequence]!;
  return sequences.toSorted(
    (a, b) => compare(prompts.get(a)!, prompts.get(b)!) || length(b) - length(a) || a - b,
  );
}

function compare(a: Int32Array, b: Int32Array): number {
  const common = Math.min(a.length, b.length);
  for (let i = 0; i < common; i++) if (a[i] !== b[i]) return a[i]! - b[i]!;
  return a.length - b.length;
}

/**
 * The same rows with positions that are computed once for all places of one prefix: what a position holds depends on the
 * tokens up to it alone. One whose target counts is its own place's, for the target differs. Each of `parts` equal
 * groups of rows shares within itself. Rows that nothing is saved in stay as they are.
 */
export function sharePrefixes(
  rows: PackedRows,
  mask: Float32Array,
  vocabSize: number,
  parts: number,
): PackedRows {
  const cores = rows.rows % parts === 0 ? parts : 1;
  const places = (rows.rows * rows.length) / cores;
  const positionOf = new Int32Array(rows.rows * rows.length);
  const placesOf = Array.from({ length: cores }, (_, core) => {
    const first = core * places;
    return sharedPlaces(rows, mask, vocabSize, positionOf.subarray(first, first + places), first);
  });
  const most = placesOf.reduce((most, { length }) => Math.max(most, length), 0);
  const size = Math.ceil(places / SIZES);
  const positions = Math.ceil(most / size) * size;
  if (positions >= places) return rows;
  const shared: PackedRows & { shared: SharedPlaces } = {
    ...rows,
    tokens: new Int32Array(cores * positions),
    targets: new Int32Array(cores * positions),
    sources: new Int32Array(cores * positions).fill(-1),
    shared: { positionOf, placeOf: new Int32Array(cores * positions) },
  };
  placesOf.forEach((own, core) => {
    own.forEach((place, i) => {
      const [to, from] = [core * positions + i, core * places + place];
      shared.tokens[to] = rows.tokens[from]!;
      shared.targets[to] = rows.targets[from]!;
      shared.sources[to] = rows.sources[from]!;
      shared.shared.placeOf[to] = place;
    });
  });
  return shared;
}

/** The places, from `first` on, that are computed; fills in which of these each place is. Padding is the first one. */
function sharedPlaces(
  { tokens, sources, segments, length }: PackedRows,
  mask: Float32Array,
  vocabSize: number,
  positionOf: Int32Array,
  first: number,
): number[] {
  const computed: number[] = [];
  /** A prefix by the one before it and its last token. */
  const prefixes = new Map<number, number>();
  const positionOfPrefix: (number | undefined)[] = [];
  let prefix = 0;
  for (let i = 0; i < positionOf.length; i++) {
    const place = first + i;
    const source = sources[place]!;
    if (source < 0) continue;
    if (i % length === 0 || segments[place] !== segments[place - 1]) prefix = 0;
    const key = prefix * vocabSize + tokens[place]!;
    prefix = prefixes.get(key) ?? prefixes.size + 1;
    prefixes.set(key, prefix);
    const counts = mask[source] === 1;
    const known = counts ? undefined : positionOfPrefix[prefix];
    positionOf[i] = known ?? computed.push(i) - 1;
    if (!counts) positionOfPrefix[prefix] = positionOf[i];
  }
  return computed;
}
