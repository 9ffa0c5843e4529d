/** What shop and goal of one level are made of. */
export interface Level {
  level: number;
  /** `stall`: a few products made for the task, in the words of a small world. `catalogue`: thousands. */
  shop: 'stall' | 'catalogue';
  /** Of a stall. */
  products: number;
  /** What a product's link says: its title, which no other on the shelf has, or a name beside it that says nothing. */
  links: 'titles' | 'ids';
  entrance: 'shelf' | 'search';
  perPage: number;
  /** How many attributes and options the customer names, fewest and most. */
  attributes: readonly [number, number];
  options: readonly [number, number];
  /** Whether there is a most that it may cost. */
  priced: boolean;
  /** Attributes are wanted that may stand on a page of features only. */
  hidden: boolean;
}

export const LEVELS: readonly Level[] = [
  {
    level: 1,
    shop: 'stall',
    products: 3,
    links: 'titles',
    entrance: 'shelf',
    perPage: 3,
    attributes: [1, 1],
    options: [0, 0],
    priced: false,
    hidden: false,
  },
  {
    level: 2,
    shop: 'stall',
    products: 4,
    links: 'titles',
    entrance: 'shelf',
    perPage: 4,
    attributes: [1, 1],
    options: [1, 1],
    priced: false,
    hidden: false,
  },
  {
    level: 3,
    shop: 'stall',
    products: 8,
    links: 'ids',
    entrance: 'search',
    perPage: 4,
    attributes: [1, 1],
    options: [1, 1],
    priced: true,
    hidden: false,
  },
  {
    level: 4,
    shop: 'catalogue',
    products: 0,
    links: 'ids',
    entrance: 'search',
    perPage: 10,
    attributes: [1, 2],
    options: [1, 2],
    priced: true,
    hidden: false,
  },
  {
    level: 5,
    shop: 'catalogue',
    products: 0,
    links: 'ids',
    entrance: 'search',
    perPage: 10,
    attributes: [2, 3],
    options: [2, 2],
    priced: true,
    hidden: true,
  },
];
