import { callByCall } from '../../../core/episode/call-by-call.ts';
import type { ToolCall } from '../../../core/episode/episode.ts';
import { ToolRefusal, type Candidate } from '../../contract/environment.ts';
import type { ActedFully, SessionEnd } from '../../contract/session.ts';
import type { Json } from '../../../core/json/json.ts';
import { asText } from './as-text.ts';
import { ENTRANCE, pageAt, resultsAt, type Page } from './pages.ts';
import type { Visit } from './goals.ts';
import { purchaseReward } from './reward.ts';
import type { Shop } from './shop.ts';

/** Where a call leads from an address. Throws ToolRefusal for what the page there does not have. */
export function addressAfter(shop: Shop, address: string, { name, arguments: args }: ToolCall): string {
  const page = existing(shop, address);
  if (name === 'search') {
    if (!page.searchBox) throw new ToolRefusal('no search box here');
    return resultsAt((args as { query: string }).query);
  }
  const { on } = args as { on: string };
  const link = page.lines
    .flat()
    .find((part) => typeof part !== 'string' && part.label.toLowerCase() === on.trim().toLowerCase());
  if (link === undefined || typeof link === 'string') throw new ToolRefusal(`no [${on}] here`);
  return link.to;
}

/** Where an episode was, in order, from the entrance on: each call that was not refused leads on. */
export function addressesOf(shop: Shop, { turns, calls }: Candidate['episode']): string[] {
  const made =
    calls ??
    turns
      .flatMap(callByCall)
      .flatMap(({ action, observation }) =>
        action.kind === 'call' && observation ? [{ call: action.call, observation }] : [],
      );
  const addresses = [ENTRANCE];
  for (const { call, observation } of made) {
    if (observation.error === undefined) addresses.push(addressAfter(shop, addresses.at(-1)!, call));
  }
  return addresses;
}

/** What a purchase was worth. */
export interface Bought extends Record<string, Json> {
  reward: number;
  parts: { [part: string]: number | number[] };
}

/** What getting to an address has bought, and what that was worth; null on all other pages. */
export function boughtAt({ shop, goal }: Visit, address: string): Bought | null {
  const { purchase } = existing(shop, address);
  return purchase === undefined ? null : purchaseReward(goal, purchase);
}

/** What the policy reads at an address; buying something ends the visit. */
export function readAt(visit: Visit, address: string): ActedFully {
  const text = asText(existing(visit.shop, address));
  const bought = boughtAt(visit, address);
  return bought === null ? { text } : { text, reward: bought.reward, done: true };
}

/** A visit that ends without a purchase was worth nothing. */
export const lastWord = (bought: Bought | null): SessionEnd => ({
  reward: bought?.reward ?? 0,
  info: bought?.parts ?? null,
});

function existing(shop: Shop, address: string): Page {
  const page = pageAt(shop, address);
  if (page === null) throw new Error(`the shop has no page ${address}`);
  return page;
}
