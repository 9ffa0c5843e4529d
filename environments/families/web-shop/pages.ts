import { centsText, titleOf, type Product, type Purchase } from './product.ts';
import type { Shop } from './shop.ts';

/** A page of the shop, before it is written as text or as HTML. */
export interface Page {
  /** Whether one can search from here. */
  searchBox: boolean;
  lines: readonly (readonly Part[])[];
  /** What getting here has bought. */
  purchase?: Purchase;
}

/** Text, or something to click on; no two links of a page have one label. */
type Part = string | { label: string; to: string };

/** Where a shop is when it is in a browser. Nothing is ever asked of this name. */
export const ORIGIN = 'http://shop.test';

export const ENTRANCE = '/';

/** The address of results. */
export const resultsAt = (query: string, page = 1): string =>
  `/search?${new URLSearchParams({ q: query, page: String(page) }).toString()}`;

/**
 * The page at an address (path and query): all that a visit has done so far is in the address. Null where there is none.
 */
export function pageAt(shop: Shop, address: string): Page | null {
  const { pathname, searchParams } = new URL(address, ORIGIN);
  const [, place, id, part] = pathname.split('/');
  if (place === '') return entrance(shop);
  if (place === 'search') return results(shop, searchParams.get('q') ?? '', Number(searchParams.get('page')));
  const product = shop.byId.get(id ?? '');
  if (product === undefined) return null;
  if (place === 'item')
    return part === 'features' ? features(product, searchParams) : item(product, searchParams);
  return place === 'buy' ? bought(product, searchParams) : null;
}

function entrance(shop: Shop): Page {
  if (shop.entrance === 'search') return { searchBox: true, lines: [] };
  return { searchBox: false, lines: shop.products.map((product) => row(shop, product, '')) };
}

function row({ links }: Shop, product: Product, query: string): Part[] {
  const [title, price, to] = [titleOf(product), centsText(product.price), `/item/${product.id}${query}`];
  if (links === 'titles') return [{ label: title, to }, price];
  // The link comes last: who reads from left to right knows by then what it is of.
  return [title, price, { label: product.id, to }];
}

function results(shop: Shop, query: string, asked: number): Page {
  const found = shop.search(query);
  const pages = Math.max(1, Math.ceil(found.length / shop.perPage));
  const page = Number.isSafeInteger(asked) ? Math.min(Math.max(asked, 1), pages) : 1;
  const here = new URLSearchParams({ q: query, page: String(page) }).toString();
  const rows = found
    .slice((page - 1) * shop.perPage, page * shop.perPage)
    .map((product) => row(shop, product, `?${here}`));
  const around: Part[] = [];
  if (page > 1) around.push({ label: 'prev', to: resultsAt(query, page - 1) });
  if (page < pages) around.push({ label: 'next', to: resultsAt(query, page + 1) });
  return {
    searchBox: true,
    lines: [
      ...(found.length === 0 ? [['nothing found']] : rows),
      ...(around.length === 0 ? [] : [[`page ${page} of ${pages}`, ...around]]),
    ],
  };
}

/** What has been chosen among the product's options. */
function chosenIn(product: Product, params: URLSearchParams): Record<string, string> {
  const chosen: Record<string, string> = {};
  for (const [kind, values] of Object.entries(product.options)) {
    const value = params.get(kind);
    if (value !== null && values.includes(value)) chosen[kind] = value;
  }
  return chosen;
}

const withParam = (params: URLSearchParams, name: string, value: string): string => {
  const changed = new URLSearchParams(params);
  changed.set(name, value);
  return changed.toString();
};

function item(product: Product, params: URLSearchParams): Page {
  const chosen = chosenIn(product, params);
  const options = Object.entries(product.options).map(([kind, values]): Part[] => [
    `${kind}:`,
    ...values.map((value): Part =>
      // What is chosen already cannot be clicked.
      chosen[kind] === value
        ? value
        : { label: value, to: `/item/${product.id}?${withParam(params, kind, value)}` },
    ),
  ]);
  const query = params.get('q');
  return {
    searchBox: false,
    lines: [
      [titleOf(product), centsText(product.price)],
      ...options,
      [
        { label: 'buy now', to: `/buy/${product.id}?${params.toString()}` },
        // Where the title says it all there is nothing more to look at.
        ...(product.titled < product.attributes.length
          ? [{ label: 'features', to: `/item/${product.id}/features?${params.toString()}` }]
          : []),
        { label: 'back', to: query === null ? ENTRANCE : resultsAt(query, Number(params.get('page') ?? 1)) },
      ],
    ],
  };
}

function features(product: Product, params: URLSearchParams): Page {
  return {
    searchBox: false,
    lines: [
      ...product.attributes.map((attribute) => [`- ${attribute}`]),
      [{ label: 'back', to: `/item/${product.id}?${params.toString()}` }],
    ],
  };
}

function bought(product: Product, params: URLSearchParams): Page {
  return {
    searchBox: false,
    lines: [['thank you']],
    purchase: { product, options: chosenIn(product, params) },
  };
}
