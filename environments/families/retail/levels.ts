/** What conversations of one level are made of. */
export interface Level {
  level: number;
  /** Wishes of a customer. */
  wishes: number;
  /** `told`: the customer says what is to be done, with ids. `looked-up`: what is to be done depends on the order. */
  first: 'told' | 'looked-up';
  /** She asks for an amount. */
  asks: boolean;
  /** A whole shop, whose customer is to be found first, with names instead of ids; the policy is in the prompt. */
  whole: boolean;
  /** One of the wishes may be something that cannot be. */
  forbidden: boolean;
  /** Digits of ids of orders. */
  digits: number;
}

const small = { wishes: 1, whole: false, forbidden: false, digits: 3 } as const;
const large = { first: 'looked-up', asks: true, whole: true, digits: 5 } as const;

export const LEVELS: readonly Level[] = [
  { level: 1, first: 'told', asks: false, ...small },
  { level: 2, first: 'looked-up', asks: false, ...small },
  { level: 3, first: 'looked-up', asks: true, ...small },
  { level: 4, wishes: 2, forbidden: false, ...large },
  { level: 5, wishes: 3, forbidden: true, ...large },
];
