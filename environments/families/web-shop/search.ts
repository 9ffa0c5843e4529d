import { titleOf, type Product } from './product.ts';

const K1 = 1.2;
const B = 0.75;

/**
 * Products by how well their titles fit a query: BM25 (Robertson and Zaragoza 2009), equal scores by their place. Only
 * products with at least one word of the query.
 */
export function createSearch(products: readonly Product[]): (query: string) => Product[] {
  const lengths = products.map((product) => wordsOf(titleOf(product)).length);
  const averageLength = lengths.reduce((sum, length) => sum + length, 0) / Math.max(1, products.length);
  /** By word: how often each product has it. */
  const postings = new Map<string, Map<number, number>>();
  for (const [place, product] of products.entries()) {
    for (const word of wordsOf(titleOf(product))) {
      const posting = postings.get(word) ?? new Map<number, number>();
      postings.set(word, posting.set(place, (posting.get(place) ?? 0) + 1));
    }
  }
  return (query) => {
    const scores = new Map<number, number>();
    for (const word of new Set(wordsOf(query))) {
      const posting = postings.get(word);
      if (posting === undefined) continue;
      const rarity = Math.log(1 + (products.length - posting.size + 0.5) / (posting.size + 0.5));
      for (const [place, count] of posting) {
        const weight = (count * (K1 + 1)) / (count + K1 * (1 - B + (B * lengths[place]!) / averageLength));
        scores.set(place, (scores.get(place) ?? 0) + rarity * weight);
      }
    }
    return [...scores].toSorted((a, b) => b[1] - a[1] || a[0] - b[0]).map(([place]) => products[place]!);
  };
}

export const wordsOf = (text: string): string[] => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
