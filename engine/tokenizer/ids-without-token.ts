import type { Json } from '../../core/json/json.ts';

/**
 * The ids below `rows` that no token of a `tokenizer.json` has, as ranges [from, to) in order. Embeddings are padded to
 * round sizes (Qwen2.5 has 151,936 rows for 151,665 tokens), and vocabularies may have holes. Empty for what names no token at all.
 */
export function idsWithoutToken(tokenizer: Json, rows: number): [from: number, to: number][] {
  const known = new Uint8Array(rows + 1);
  let count = 0;
  for (const id of idsIn(tokenizer)) {
    count++;
    if (typeof id === 'number' && id < rows) known[id] = 1;
  }
  if (count === 0) return [];
  known[rows] = 1;
  const ranges: [number, number][] = [];
  for (let from = known.indexOf(0); from >= 0;) {
    const to = known.indexOf(1, from);
    ranges.push([from, to]);
    from = known.indexOf(0, to);
  }
  return ranges;
}

/** The largest id that a `tokenizer.json` has, looked up before a tokenizer is made, which takes minutes for millions. -1 for none. */
export function largestIdIn(tokenizer: Json): number {
  let largest = -1;
  for (const id of idsIn(tokenizer)) if (typeof id === 'number' && id > largest) largest = id;
  return largest;
}

function* idsIn(tokenizer: Json): Generator {
  const { model, added_tokens: added } = (tokenizer ?? {}) as {
    model?: { vocab?: Record<string, number> | unknown[] };
    added_tokens?: ({ id: number } | null)[] | null;
  };
  const vocab = model?.vocab ?? {};
  // A list, as of Unigram, has its ids in order.
  if (Array.isArray(vocab)) yield* vocab.keys();
  else yield* Object.values(vocab);
  for (const token of Array.isArray(added) ? added : []) yield token?.id;
}
