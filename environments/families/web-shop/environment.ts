import { z } from 'zod';
import { RandomStream } from '../../../core/random.ts';
import { defineEnvironment, sessionTool, type Environment } from '../../contract/environment.ts';
import { fold } from '../../contract/session.ts';
import { formatVerifier } from '../../verifiers/format.ts';
import { toolShaping } from '../../verifiers/tool-shaping.ts';
import { asText } from './as-text.ts';
import { demonstrate } from './demonstrate.ts';
import { createVisits, otherWish, splitOf, toJson, wishOf, wishText } from './goals.ts';
import type { OtherWish, Visit } from './goals.ts';
import { hint } from './hint.ts';
import { LEVELS } from './levels.ts';
import { ENTRANCE, pageAt } from './pages.ts';
import { infoOf, purchaseVerifier } from './purchase-verifier.ts';
import { boughtInstead } from './relabel.ts';
import { addressAfter, boughtAt, lastWord, readAt, type Bought } from './visit.ts';

/** Of a search, characters: it stands in the address, which is the episode's state. */
const LONGEST_QUERY = 200;

/** Tools, tasks and verifiers of the shop, which is the same as text and in a browser. */
export function shopOf(visits: ReturnType<typeof createVisits>) {
  return {
    levels: LEVELS.map(({ level }) => level),
    version: 'tasks 3',
    tools: [
      sessionTool({
        name: 'search',
        description: 'Types words into the search box of the page and presses Enter.',
        arguments: z.strictObject({
          query: z.string().max(LONGEST_QUERY).describe('What to search for, like "oak desk lamp"'),
        }),
      }),
      sessionTool({
        name: 'click',
        description: 'Clicks something on the page.',
        arguments: z.strictObject({
          on: z.string().describe('What stands in [square brackets] on the page'),
        }),
      }),
    ],
    verifiers: [purchaseVerifier(visits), formatVerifier(), toolShaping()],
    task: (ref) => ({ ref, prompt: promptOf(visits(ref), ref.level) }),
    relabel: (candidate) => {
      const { ref } = candidate.task;
      const { shop, goal: asked } = visits(ref);
      const goal = boughtInstead({ shop, goal: asked }, candidate);
      return goal && { prompt: promptOf({ shop, goal }, ref.level), info: infoOf(goal) };
    },
    hint: (candidate) => hint(visits(candidate.task.ref), candidate),
    vary: ({ ref }, index) => {
      const [before] = (ref.made ?? []) as unknown as OtherWish[];
      const shop = before?.shop ?? { split: ref.split, index: ref.index };
      const visit = visits(ref);
      const was = [ref.level, shop.split, shop.index, wishOf(visit.goal)];
      const goal = otherWish(visit, ref.level, new RandomStream('web-shop', 'variation', ...was, index));
      if (goal === null) return { kind: 'none', reason: 'nobody could want anything else there' };
      const canonical = JSON.stringify([ref.level, shop.split, shop.index, wishOf(goal), goal.priceLimit]);
      return { kind: 'task', proposal: toJson({ shop, goal }), canonical, split: splitOf(goal) };
    },
    demonstrate: ({ ref }) => demonstrate(visits(ref)),
    taskCount: () => Infinity,
  } satisfies Partial<Environment>;
}

function promptOf({ shop, goal }: Visit, asked: number): string {
  const level = LEVELS.find(({ level }) => level === asked)!;
  return `${wishText(goal, level.shop)}\n${asText(pageAt(shop, ENTRANCE)!)}`;
}

/** The shop as text: a customer's wish, pages, and WebShop's reward for what was bought. */
export function webShopEnvironment(): Environment {
  const visits = createVisits();
  return defineEnvironment({
    name: 'web-shop',
    ...shopOf(visits),
    sessions: fold<{ address: string; bought: Bought | null }>({
      open: () => ({ address: ENTRANCE, bought: null }),
      act: async (state, call, context) => {
        const visit = visits((await context.task()).ref);
        const address = addressAfter(visit.shop, state.address, call);
        const bought = boughtAt(visit, address);
        return { state: { address, bought }, did: readAt(visit, address) };
      },
      end: ({ bought }) => lastWord(bought),
    }),
  });
}
