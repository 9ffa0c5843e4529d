import { callByCall } from '../../../core/episode/call-by-call.ts';
import type { Candidate } from '../../contract/environment.ts';
import { splitOf, wishText, type Visit } from './goals.ts';
import { LEVELS } from './levels.ts';
import { pageAt } from './pages.ts';
import type { Goal } from './product.ts';
import { wordsOf } from './search.ts';
import { addressesOf } from './visit.ts';

/**
 * The wish that a purchase has fulfilled in place of its own: what was met stays, the rest is what was bought. It is of the same
 * level, so something was chosen where the level asks for a choice, and of the same split; null where there is none.
 * Of the product it names only what the episode has read. An episode with a call that was refused is no example, nor is one
 * that wrote what only its own wish says, or searched for what the other one does not say.
 */
export function boughtInstead({ shop, goal }: Visit, { task, episode }: Candidate): Goal | null {
  const turns = episode.turns.flatMap(callByCall);
  if (episode.calls !== undefined || turns.length === 0) return null;
  const addresses = addressesOf(shop, episode);
  // Each call has led on.
  if (addresses.length !== turns.length + 1) return null;
  const { purchase } = pageAt(shop, addresses.at(-1)!)!;
  if (purchase === undefined) return null;
  const { product, options } = purchase;
  const level = LEVELS.find((one) => one.level === task.ref.level)!;
  const read = addresses.some((address) => address.startsWith(`/item/${product.id}/features`));
  const known = level.hidden && read ? product.attributes : product.attributes.slice(0, product.titled);
  const attributes = nearest(goal.attributes, known);
  const kinds = nearest(Object.keys(goal.options), Object.keys(options));
  if (attributes.length < level.attributes[0] || kinds.length < level.options[0]) return null;
  const { department, type, price } = product;
  const other: Goal = {
    department,
    type,
    attributes,
    options: Object.fromEntries(kinds.map((kind) => [kind, options[kind]!])),
    // In steps of five dollars, as in the shop's own wishes.
    priceLimit:
      goal.priceLimit === null || price <= goal.priceLimit ? goal.priceLimit : Math.ceil(price / 500) * 500,
  };
  if (splitOf(other) !== task.ref.split) return null;
  const said = wordsOf(wishText(other, level.shop));
  const unsaid = wordsOf(wishText(goal, level.shop)).filter((word) => !said.includes(word));
  const isOfIt = turns.every(({ text, action }) => {
    if (action.kind !== 'call') return false;
    const { on, query } = action.call.arguments as { on?: string; query?: string };
    const written = wordsOf([text, on, query].join(' '));
    return (
      !unsaid.some((word) => written.includes(word)) &&
      wordsOf(query ?? '').every((word) => said.includes(word))
    );
  });
  return isOfIt ? other : null;
}

/** As many of what there is as are wanted: those that are wanted first. */
const nearest = (wanted: readonly string[], there: readonly string[]): string[] =>
  [...wanted.filter((one) => there.includes(one)), ...there.filter((one) => !wanted.includes(one))].slice(
    0,
    wanted.length,
  );
