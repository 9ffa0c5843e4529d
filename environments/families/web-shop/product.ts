/** Something the shop sells. */
export interface Product {
  /** A letter at a stall, four digits in the big shop; a link with this label opens its page. */
  id: string;
  department: string;
  /** What it is: one or more nouns. Searches find it by this. */
  type: string;
  brand: string | null;
  /** What is true of it; the first `titled` of them stand in its title, all of them on its page of features. */
  attributes: readonly string[];
  titled: number;
  /** What the buyer chooses, by kind; values differ between the kinds of one product. */
  options: Readonly<Record<string, readonly string[]>>;
  /** US cents. */
  price: number;
}

export function titleOf({ brand, attributes, titled, type }: Product): string {
  return [...(brand === null ? [] : [brand]), ...attributes.slice(0, titled), type].join(' ');
}

export function centsText(cents: number): string {
  return cents % 100 === 0 ? `$${cents / 100}` : `$${(cents / 100).toFixed(2)}`;
}

/** What a customer wants. */
export interface Goal {
  department: string;
  type: string;
  attributes: readonly string[];
  /** A value for each kind that matters. */
  options: Readonly<Record<string, string>>;
  /** The most it may cost, US cents; null where the price does not matter. */
  priceLimit: number | null;
}

/** What was bought, and with which options. */
export interface Purchase {
  product: Product;
  options: Readonly<Record<string, string>>;
}
