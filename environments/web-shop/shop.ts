import type { Product } from './product.ts';
import { createSearch } from './search.ts';

/** What is sold, and how one gets in. */
export interface Shop {
  products: readonly Product[];
  byId: ReadonlyMap<string, Product>;
  search(query: string): Product[];
  /** `shelf`: the first page lists everything. `search`: it has a search box. */
  entrance: 'shelf' | 'search';
  /** Products on a page of results. */
  perPage: number;
}

export function openShop(products: readonly Product[], entrance: Shop['entrance'], perPage: number): Shop {
  const byId = new Map(products.map((product) => [product.id, product]));
  return { products, byId, search: createSearch(products), entrance, perPage };
}
