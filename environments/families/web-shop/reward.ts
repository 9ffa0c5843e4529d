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
 * A goal without a limit has no term for the price; r_type is our own.
 */
export function purchaseReward(goal: Goal, purchase: Purchase): { reward: number; parts: RewardParts } {
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
 * r_type: 1 for what was wanted, 0.5 for another type of the same department that shares a noun with it (a floor lamp for a
 * desk lamp), 0.1 where a noun is all that they share. The paper's own thresholds are made for titles of many nouns; types
 * here have one or two, and one shared noun would be the full reward.
 */
function typeMatch(goal: Goal, product: Product): number {
  if (product.type === goal.type) return 1;
  const wanted = new Set(goal.type.split(' '));
  if (!product.type.split(' ').some((noun) => wanted.has(noun))) return 0;
  return product.department === goal.department ? 0.5 : 0.1;
}
