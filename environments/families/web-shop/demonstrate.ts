import type { ToolCall } from '../../../core/episode/episode.ts';
import type { Demonstration, DemonstrationTurn } from '../../contract/environment.ts';
import { ENTRANCE, pageAt } from './pages.ts';
import type { Goal, Product } from './product.ts';
import { purchaseReward } from './reward.ts';
import type { Visit } from './goals.ts';
import type { Shop } from './shop.ts';
import { addressAfter, readAt } from './visit.ts';

/**
 * A customer who reads: searches for type and attributes, goes through the results in their order, opens what could fit by
 * title and price, looks at the features where the title does not say enough, chooses the options and buys.
 */
export function demonstrate(visit: Visit): Demonstration {
  const { shop, goal } = visit;
  const turns: DemonstrationTurn[] = [];
  let address = ENTRANCE;
  const act = (name: ToolCall['name'], args: { on: string } | { query: string }): void => {
    address = addressAfter(shop, address, { name, arguments: args });
    turns.push({ call: { name, arguments: args }, observation: readAt(visit, address).text });
  };
  const click = (on: string): void => act('click', { on });

  if (shop.entrance === 'search') act('search', { query: [...goal.attributes, goal.type].join(' ') });
  for (;;) {
    for (const { product, label } of listedAt(shop, address)) {
      if (!couldFit(goal, product)) continue;
      click(label);
      const offered = Object.entries(goal.options).every(([kind, value]) =>
        product.options[kind]?.includes(value),
      );
      // Only what the title leaves open is looked up.
      const open =
        offered && goal.attributes.some((one) => !product.attributes.slice(0, product.titled).includes(one));
      if (open) {
        click('features');
        click('back');
      }
      if (offered && purchaseReward(goal, { product, options: goal.options }).reward === 1) {
        for (const value of Object.values(goal.options)) click(value);
        click('buy now');
        return { turns, weight: 1 };
      }
      click('back');
    }
    click('next');
  }
}

function listedAt(shop: Shop, address: string): { product: Product; label: string }[] {
  return pageAt(shop, address)!
    .lines.flat()
    .flatMap((part) => {
      if (typeof part === 'string') return [];
      const [, place, id] = part.to.split(/[/?]/);
      const product = place === 'item' ? shop.byId.get(id!) : undefined;
      return product === undefined ? [] : [{ product, label: part.label }];
    });
}

/** By what a list of results shows. */
function couldFit(goal: Goal, product: Product): boolean {
  const titled = product.attributes.slice(0, product.titled);
  const untitled = goal.attributes.filter((attribute) => !titled.includes(attribute)).length;
  return (
    product.type === goal.type &&
    (goal.priceLimit === null || product.price <= goal.priceLimit) &&
    untitled <= product.attributes.length - product.titled
  );
}
