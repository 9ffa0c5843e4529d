import retail from '../../examples/retail.json' with { type: 'json' };
import searchQa from '../../examples/search-qa.json' with { type: 'json' };
import sweSmall from '../../examples/swe-small.json' with { type: 'json' };
import toolMath from '../../examples/tool-math.json' with { type: 'json' };
import webShop from '../../examples/web-shop.json' with { type: 'json' };
import webShopBrowser from '../../examples/web-shop-browser.json' with { type: 'json' };

/** A task family as it is measured: what its demo learns, and what its environment costs. */
export interface FamilyCase {
  name: string;
  /** A curriculum that two cores finish within twenty minutes. */
  spec: unknown;
  environment: string;
  /** Levels at which an expert's calls are timed: one that is learnt from scratch, and one that is not. */
  played: readonly number[];
  /** Modules to load besides what is built in. */
  modules?: readonly string[];
}

export const FAMILIES: readonly FamilyCase[] = [
  { name: 'tool-math', spec: toolMath, environment: 'tool-math', played: [1, 5] },
  { name: 'search-qa', spec: searchQa, environment: 'search-qa', played: [1, 6] },
  { name: 'swe-small', spec: sweSmall, environment: 'swe-small', played: [1, 5] },
  { name: 'retail', spec: retail, environment: 'retail', played: [1, 5] },
  { name: 'web-shop', spec: webShop, environment: 'web-shop', played: [1, 5] },
  { name: 'web-shop-browser', spec: webShopBrowser, environment: 'web-shop-browser', played: [1, 4] },
];
