import { GradusError } from '../../../core/errors.ts';
import type { Json } from '../../../core/json/json.ts';
import { RandomStream } from '../../../core/random.ts';
import type { MadeTaskRef, Split } from '../../../core/refs.ts';
import { splitOfProblem } from '../../contract/generated-tasks.ts';
import { makeCatalogue } from './catalogue.ts';
import { LEVELS, type Level } from './levels.ts';
import { centsText, type Goal, type Product } from './product.ts';
import { openShop, type Shop } from './shop.ts';
import { makeStall } from './stall.ts';

/** A wish that was made of another one: the shop is that of a generated task. */
export interface OtherWish {
  shop: { split: Split; index: number };
  goal: Goal;
}

/** As a variation is kept. */
export const toJson = ({ shop, goal }: OtherWish): Json => JSON.parse(JSON.stringify({ shop, goal })) as Json;

/** A customer in front of a shop. */
export interface Visit {
  shop: Shop;
  goal: Goal;
}

/**
 * Decided by what is wanted, not by what else is on the shelf: nothing wanted in one split is wanted in another. What it may
 * cost is chance, and no other limit makes a held-out wish out of a trained one.
 */
export const splitOf = (goal: Goal): Split => splitOfProblem('web-shop', wishOf(goal));

/** What is wanted, but for what it may cost. */
export function wishOf({ type, attributes, options }: Goal): string {
  const chosen = Object.entries(options).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify([type, attributes.toSorted(), chosen, null]);
}

/** The visits at (split, level, index): the same for the same coordinates. Throws GradusError('environment', 'task'). */
export function createVisits(): (ref: MadeTaskRef) => Visit {
  const bigShops = new Map<number, Shop>();
  let catalogue: Product[] | undefined;
  const bigShop = (level: Level): Shop => {
    let shop = bigShops.get(level.perPage);
    if (shop === undefined) {
      catalogue ??= makeCatalogue();
      shop = openShop(catalogue, level);
      bigShops.set(level.perPage, shop);
    }
    return shop;
  };
  const visitAt = ({
    split,
    level: asked,
    index,
    made,
  }: Pick<MadeTaskRef, 'split' | 'level' | 'index' | 'made'>): Visit => {
    if (made !== undefined) {
      const { shop, goal } = made[0] as unknown as OtherWish;
      return { shop: visitAt({ ...shop, level: asked }).shop, goal };
    }
    const level = LEVELS.find((one) => one.level === asked);
    if (level === undefined || !Number.isSafeInteger(index) || index < 0) {
      throw new GradusError(
        'environment',
        'task',
        `The shop has no task ${index} at level ${asked}; levels are ${LEVELS.map((one) => one.level).join(', ')} and indexes whole numbers from 0.`,
      );
    }
    const random = new RandomStream('web-shop', 'task', split, asked, index);
    for (;;) {
      if (level.shop === 'stall') {
        const { products, goal } = makeStall(level, random);
        if (splitOf(goal) === split) return { shop: openShop(products, level), goal };
      } else {
        const shop = bigShop(level);
        const goal = wishFor(random.pick(shop.products), level, random);
        if (goal !== null && splitOf(goal) === split) return { shop, goal };
      }
    }
  };
  return visitAt;
}

/** How often another product is looked at for what somebody might want of it. */
const MOST_DRAWS = 50;

/** What somebody else may want in the same shop: of what is wanted now if there is more of it, else of anything. */
export function otherWish({ shop, goal }: Visit, asked: number, random: RandomStream): Goal | null {
  const level = LEVELS.find((one) => one.level === asked)!;
  const alike = shop.products.filter(({ type }) => type === goal.type);
  for (let n = 0; n < MOST_DRAWS; n++) {
    const product = random.pick(random.uniform() < 0.5 ? alike : shop.products);
    const other = wishFor(product, level, random);
    if (other === null || wishOf(other) === wishOf(goal)) continue;
    return level.priced ? other : { ...other, priceLimit: null };
  }
  return null;
}

/** What somebody wants who will be happy with the product; null where the level asks for more than it has. */
function wishFor(product: Product, level: Level, random: RandomStream): Goal | null {
  const known = level.hidden ? product.attributes : product.attributes.slice(0, product.titled);
  const attributes = random.shuffle([...known]).slice(0, random.int(...level.attributes));
  const kinds = random.shuffle(Object.keys(product.options)).slice(0, random.int(...level.options));
  if (attributes.length < level.attributes[0] || kinds.length < level.options[0]) return null;
  return {
    department: product.department,
    type: product.type,
    attributes,
    options: Object.fromEntries(kinds.map((kind) => [kind, random.pick(product.options[kind]!)])),
    // Up to a third more than it costs, in steps of five dollars.
    priceLimit: Math.ceil((product.price * (1 + random.uniform() / 3)) / 500) * 500,
  };
}

/** What is wanted in words: short ones at a stall, a sentence in the big shop. */
export function wishText(goal: Goal, shop: Level['shop']): string {
  const { type, attributes, options, priceLimit } = goal;
  if (shop === 'stall') {
    // In brackets a word is the same token as where it is clicked on; behind a blank it would be another.
    const more = [
      ...Object.values(options),
      ...(priceLimit === null ? [] : [`at most ${centsText(priceLimit)}`]),
    ];
    return `${attributes.join(' ')} ${type}${more.length === 0 ? '' : ` (${more.join(', ')})`}`;
  }
  const wishes = Object.entries(options).map(([kind, value]) => `${kind} ${value}`);
  return (
    `Buy this in the shop: ${type}, ${inWords(attributes)}, with ${inWords(wishes)}, ` +
    `for at most ${centsText(priceLimit!)}.`
  );
}

const inWords = (items: readonly string[]): string =>
  items.length < 2 ? items.join('') : `${items.slice(0, -1).join(', ')} and ${items.at(-1)!}`;
