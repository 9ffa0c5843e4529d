import type { Json } from '../../core/json/json.ts';

/**
 * The ids below `rows` that no token of a `tokenizer.json` has, as ranges [from, to) in order. Embeddings are padded to
 * round sizes (Qwen2.5 has 151,936 rows for 151,665 tokens), and vocabularies may have holes. Empty for what names no token at all.
 */
export function idsWithoutToken(tokenizer: Json, rows: number): [from: number, to: number][] {
  const known = new Uint8Array(rows + 1);
  let count = 0;
  const add = (id: unknown): void => {
    count++;
    if (typeof id === 'number' && id < rows) known[id] = 1;
  };
  const { model, added_tokens: added } = (tokenizer ?? {}) as {
    model?: { vocab?: Record<string, number> | unknown[] };
    added_tokens?: ({ id: number } | null)[] | null;
  };
  const vocab = model?.vocab ?? {};
  // A list, as of Unigram, has its ids in order.
  if (Array.isArray(vocab)) for (const id of vocab.keys()) add(id);
  else for (const id of Object.values(vocab)) add(id);
  for (const token of Array.isArray(added) ? added : []) add(token?.id);
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
