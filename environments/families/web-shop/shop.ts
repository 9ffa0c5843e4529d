import type { Level } from './levels.ts';
import type { Product } from './product.ts';
import { createSearch } from './search.ts';

/** What is sold, and how one gets in. */
export interface Shop {
  products: readonly Product[];
  byId: ReadonlyMap<string, Product>;
  search(query: string): Product[];
  /** `shelf`: the first page lists everything. `search`: it has a search box. */
  entrance: Level['entrance'];
  links: Level['links'];
  /** Products on a page of results. */
  perPage: number;
}

export function openShop(
  products: readonly Product[],
  { entrance, links, perPage }: Pick<Level, 'entrance' | 'links' | 'perPage'>,
): Shop {
  const byId = new Map(products.map((product) => [product.id, product]));
  return { products, byId, search: createSearch(products), entrance, links, perPage };
}
