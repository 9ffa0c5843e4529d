import type { Candidate } from '../../contract/environment.ts';
import type { Visit } from './goals.ts';
import { pageAt } from './pages.ts';
import { purchaseReward } from './reward.ts';
import { addressesOf } from './visit.ts';

/**
 * Which parts of the wish were not met by what was bought, by their kinds: no value that was wanted, and nothing to click on.
 * Null where all were met.
 */
export function hint({ shop, goal }: Visit, { episode }: Candidate): string | null {
  const addresses = addressesOf(shop, episode);
  const purchase = pageAt(shop, addresses.at(-1)!)!.purchase;
  if (purchase === undefined)
    return addresses.some((address) => address.startsWith('/item/'))
      ? 'Nothing was bought: a visit without a purchase is worth nothing.'
      : 'No product was looked at, and nothing was bought.';
  const { product, options } = purchase;
  const { reward, parts } = purchaseReward(goal, purchase);
  if (reward === 1) return null;
  const unmet: string[] = [];
  if (parts.type < 1) unmet.push('it is another thing than was wanted');
  const [met, wanted] = parts.attributes;
  if (met < wanted) {
    const read = addresses.some((address) => address.startsWith(`/item/${product.id}/features`));
    const unread = !read && product.titled < product.attributes.length;
    unmet.push(
      `it lacks ${met === 0 ? 'every' : 'some'} attribute that was wanted` +
        (unread ? ', and its features were not looked at' : ''),
    );
  }
  for (const [kind, value] of Object.entries(goal.options)) {
    if (options[kind] === value) continue;
    unmet.push(options[kind] === undefined ? `the ${kind} was not chosen` : `the ${kind} is not as wanted`);
  }
  const [within, limited] = parts.price;
  if (within < limited) unmet.push('it costs more than was allowed');
  return `What was bought is not what was wanted: ${unmet.join('; ')}.`;
}
