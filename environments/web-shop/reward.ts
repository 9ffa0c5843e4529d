import type { Goal, Product, Purchase } from './product.ts';

/** The parts of a purchase's reward: how many of how many. */
export interface RewardParts extends Record<string, number | number[]> {
  /** r_type in [0, 1]. */
  type: number;
  attributes: [number, number];
  options: [number, number];
  price: [number, number];
}

/**
 * WebShop's reward (Yao et al. 2022, arXiv 2207.01206, section 3.3), in [0, 1]:
 *
 *   r = r_type · (|U_att ∩ Y_att| + |U_opt ∩ Y_opt| + 1[y_price ≤ u_price]) / (|U_att| + |U_opt| + 1)
 *
 * A goal without a limit has no term for the price.
 */
export function rewardOf(goal: Goal, purchase: Purchase): { reward: number; parts: RewardParts } {
  const { product } = purchase;
  const wanted = Object.entries(goal.options);
  const parts: RewardParts = {
    type: typeMatch(goal, product),
    attributes: [
      goal.attributes.filter((attribute) => product.attributes.includes(attribute)).length,
      goal.attributes.length,
    ],
    options: [wanted.filter(([kind, value]) => purchase.options[kind] === value).length, wanted.length],
    price: goal.priceLimit === null ? [0, 0] : [product.price <= goal.priceLimit ? 1 : 0, 1],
  };
  const terms = [parts.attributes, parts.options, parts.price];
  const met = terms.reduce((sum, [one]) => sum + one, 0);
  const asked = terms.reduce((sum, [, one]) => sum + one, 0);
  return { reward: asked === 0 ? parts.type : (parts.type * met) / asked, parts };
}

/**
 * r_type of the same paper: what was bought is the kind of thing that was wanted, by the nouns that titles share, unless
 * the search that it is made for or the department is the same. Nouns are those of the type: titles are generated.
 */
function typeMatch(goal: Goal, product: Product): number {
  const wanted = new Set(goal.type.split(' '));
  const shared = product.type.split(' ').filter((noun) => wanted.has(noun)).length / wanted.size;
  if (shared === 0) return 0;
  if (shared < 0.1) return 0.1;
  return shared <= 0.2 && product.type !== goal.type && product.department !== goal.department ? 0.5 : 1;
}
