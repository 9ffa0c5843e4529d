import retail from '../../examples/retail.json' with { type: 'json' };
import searchQa from '../../examples/search-qa.json' with { type: 'json' };
import sweSmall from '../../examples/swe-small.json' with { type: 'json' };
import toolMath from '../../examples/tool-math.json' with { type: 'json' };
import webShop from '../../examples/web-shop.json' with { type: 'json' };
import webShopBrowser from '../../examples/web-shop-browser.json' with { type: 'json' };
import type { BenchOptions } from '../bench.ts';
import { learnBy } from './learnt.ts';
import type { Learnt } from './learnt.ts';
import { moleculesDemo } from './molecules-demo.ts';

/** A task family as it is measured: what its demo learns, and what its environment costs. */
export interface FamilyCase {
  name: string;
  /** Its demo, which two cores finish within twenty minutes. */
  learn: (options: BenchOptions) => Promise<Learnt>;
  environment: string;
  /** Levels at which an expert's calls are timed: one that is learnt from scratch, and one that is not. */
  played: readonly number[];
}

export const FAMILIES: readonly FamilyCase[] = [
  { name: 'tool-math', learn: learnBy(toolMath), environment: 'tool-math', played: [1, 5] },
  { name: 'search-qa', learn: learnBy(searchQa), environment: 'search-qa', played: [1, 6] },
  { name: 'swe-small', learn: learnBy(sweSmall), environment: 'swe-small', played: [1, 5] },
  { name: 'retail', learn: learnBy(retail), environment: 'retail', played: [1, 5] },
  { name: 'web-shop', learn: learnBy(webShop), environment: 'web-shop', played: [1, 5] },
  { name: 'molecules', learn: moleculesDemo, environment: 'molecules', played: [1, 4] },
  {
    name: 'web-shop-browser',
    learn: learnBy(webShopBrowser),
    environment: 'web-shop-browser',
    played: [1, 4],
  },
];
