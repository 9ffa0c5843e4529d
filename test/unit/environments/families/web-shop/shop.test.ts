import { describe, expect, it } from 'vitest';
import { asText } from '../../../../../environments/families/web-shop/as-text.ts';
import { CATALOGUE_SIZE, makeCatalogue } from '../../../../../environments/families/web-shop/catalogue.ts';
import { demonstrate } from '../../../../../environments/families/web-shop/demonstrate.ts';
import { createVisits, splitOf, wishText } from '../../../../../environments/families/web-shop/goals.ts';
import { LEVELS } from '../../../../../environments/families/web-shop/levels.ts';
import { ENTRANCE, pageAt, resultsAt } from '../../../../../environments/families/web-shop/pages.ts';
import type { Goal, Product } from '../../../../../environments/families/web-shop/product.ts';
import { purchaseReward } from '../../../../../environments/families/web-shop/reward.ts';
import { openShop } from '../../../../../environments/families/web-shop/shop.ts';
import {
  addressAfter,
  boughtAt,
  lastWord,
  readAt,
} from '../../../../../environments/families/web-shop/visit.ts';
import { ToolRefusal } from '../../../../../environments/contract/environment.ts';
import type { Split } from '../../../../../core/refs.ts';

const lamp: Product = {
  id: '1000',
  department: 'lighting',
  type: 'desk lamp',
  brand: 'Norda',
  attributes: ['dimmable', 'foldable'],
  titled: 1,
  options: { finish: ['brass', 'chrome'], plug: ['type c', 'type f'] },
  price: 2499,
};
const goal: Goal = {
  department: 'lighting',
  type: 'desk lamp',
  attributes: ['dimmable', 'foldable'],
  options: { finish: 'brass' },
  priceLimit: 2500,
};

describe("WebShop's reward", () => {
  const rewarded = (product: Partial<Product>, options: Record<string, string> = { finish: 'brass' }) =>
    purchaseReward(goal, { product: { ...lamp, ...product }, options }).reward;

  it('is 1 where everything is as wanted, and only there', () => {
    expect(rewarded({})).toBe(1);
    expect(rewarded({ price: 2500 })).toBe(1);
    expect(rewarded({}, { finish: 'brass', plug: 'type c' })).toBe(1);
  });

  it('gives each attribute, each option and the price the same part', () => {
    expect(rewarded({ attributes: ['dimmable'] })).toBe(3 / 4);
    expect(rewarded({}, {})).toBe(3 / 4);
    expect(rewarded({}, { finish: 'chrome' })).toBe(3 / 4);
    expect(rewarded({ price: 2501 })).toBe(3 / 4);
    expect(rewarded({ attributes: [], price: 9900 }, {})).toBe(0);
  });

  it('is scaled by how near the type is', () => {
    expect(rewarded({ type: 'kettle', department: 'kitchen' })).toBe(0);
    expect(rewarded({ type: 'floor lamp' })).toBe(0.5);
    expect(rewarded({ type: 'lamp shelf', department: 'furniture' })).toBe(0.1);
  });

  it('has no term for the price where nobody named one', () => {
    const free = { ...goal, priceLimit: null };
    expect(purchaseReward(free, { product: { ...lamp, price: 1_000_000 }, options: {} }).reward).toBe(2 / 3);
  });
});

describe('pages', () => {
  const kettle = { ...lamp, id: '1001', type: 'kettle', brand: null, titled: 2, price: 800 };
  const shop = openShop([lamp, kettle], { entrance: 'search', links: 'ids', perPage: 1 });
  const visit = { shop, goal };

  it('read as short lines, with what can be clicked in brackets', () => {
    expect(asText(pageAt(shop, ENTRANCE)!)).toBe('search:');
    expect(readAt(visit, resultsAt('foldable dimmable')).text).toBe(
      'search:\ndimmable foldable kettle $8 [1001]\npage 1 of 2 [next]',
    );
    expect(readAt(visit, resultsAt('nothing of the kind')).text).toBe('search:\nnothing found');
    expect(readAt(visit, '/item/1000').text).toBe(
      'Norda dimmable desk lamp $24.99\nfinish: [brass] [chrome]\nplug: [type c] [type f]\n[buy now] [features] [back]',
    );
  });

  it('are a walk of calls, whose state is the address', () => {
    let address = ENTRANCE;
    const act = (name: string, args: Record<string, string>): string => {
      address = addressAfter(shop, address, { name, arguments: args });
      return readAt(visit, address).text;
    };
    act('search', { query: 'dimmable' });
    const first = act('click', { on: 'next' });
    expect(first).toContain('page 2 of 2');
    act('click', { on: 'prev' });
    act('search', { query: 'Desk LAMP' });
    act('click', { on: '1000' });
    expect(act('click', { on: 'features' })).toBe('- dimmable\n- foldable\n[back]');
    act('click', { on: 'back' });
    expect(act('click', { on: 'brass' })).toContain('finish: brass [chrome]');
    expect(boughtAt(visit, address)).toBeNull();
    expect(act('click', { on: 'Buy now' })).toBe('thank you');
    expect(readAt(visit, address)).toEqual({ text: 'thank you', reward: 1, done: true });
    expect(lastWord(boughtAt(visit, address))).toMatchObject({
      reward: 1,
      info: { type: 1, options: [1, 1] },
    });
  });

  it('go back to the results that one came from', () => {
    const there = addressAfter(shop, resultsAt('dimmable', 2), { name: 'click', arguments: { on: '1000' } });
    const chosen = addressAfter(shop, there, { name: 'click', arguments: { on: 'chrome' } });
    const back = addressAfter(shop, chosen, { name: 'click', arguments: { on: 'back' } });
    expect(back).toBe(resultsAt('dimmable', 2));
  });

  it('refuse what they do not have', () => {
    const click = (on: string) => addressAfter(shop, '/item/1000', { name: 'click', arguments: { on } });
    expect(() => click('green')).toThrow(ToolRefusal);
    // What is chosen already is no link.
    expect(() =>
      addressAfter(shop, '/item/1000?finish=brass', { name: 'click', arguments: { on: 'brass' } }),
    ).toThrow('no [brass] here');
    expect(() => addressAfter(shop, '/item/1000', { name: 'search', arguments: { query: 'mug' } })).toThrow(
      'no search box here',
    );
  });

  it('cost a visit that never buys its whole reward', () => {
    expect(lastWord(boughtAt(visit, '/item/1000'))).toEqual({ reward: 0, info: null });
  });
});

describe('the catalogue', () => {
  it('is thousands of different products, the same each time', () => {
    const products = makeCatalogue();
    expect(products).toHaveLength(CATALOGUE_SIZE);
    expect(new Set(products.map(({ id }) => id)).size).toBe(CATALOGUE_SIZE);
    expect(makeCatalogue().slice(0, 50)).toEqual(products.slice(0, 50));
    // Two options of one product never have one label.
    for (const { options } of products) {
      const values = Object.values(options).flat();
      expect(new Set(values).size).toBe(values.length);
    }
  });
});

describe('tasks', () => {
  const visits = createVisits();
  const refs = (split: Split, level: number, count: number) =>
    Array.from({ length: count }, (_, index) => ({ environment: 'web-shop', split, level, index }));

  it.each(LEVELS.map(({ level }) => level))('of level %i are solved by their demonstration', (level) => {
    for (const ref of refs('train', level, 60)) {
      const visit = visits(ref);
      const { turns } = demonstrate(visit);
      let address = ENTRANCE;
      for (const { call, observation } of turns) {
        address = addressAfter(visit.shop, address, call!);
        expect(readAt(visit, address).text).toBe(observation);
      }
      expect(boughtAt(visit, address)?.reward).toBe(1);
    }
  });

  it('of a stall have one product that fits, and of all levels nothing that is wanted in two splits', () => {
    for (const { level, shop: kind } of LEVELS) {
      const wishes = new Map<string, Split>();
      for (const split of ['train', 'heldout', 'test'] as const) {
        for (const ref of refs(split, level, 150)) {
          const { goal, shop } = visits(ref);
          expect(splitOf(goal)).toBe(split);
          // What it may cost makes no other wish.
          const wish = wishText(goal, kind).replace(/, (?:for )?at most \$\d+/u, '');
          expect(wishes.get(wish) ?? split).toBe(split);
          wishes.set(wish, split);
          if (kind === 'catalogue') continue;
          const fit = shop.products.filter(
            (product) => purchaseReward(goal, { product, options: offered(product, goal) }).reward === 1,
          );
          expect(fit).toHaveLength(1);
        }
      }
      expect(new Set(wishes.values()).size).toBe(3);
    }
  });

  it('of the big shop are not solved by another type', () => {
    for (const ref of [...refs('test', 4, 10), ...refs('test', 5, 10)]) {
      const { goal, shop } = visits(ref);
      const others = shop.products.filter(({ type }) => type !== goal.type);
      const best = Math.max(
        ...others.map((product) => purchaseReward(goal, { product, options: goal.options }).reward),
      );
      expect(best).toBeLessThan(1);
    }
  });

  it('are the same for the same coordinates, whoever asked before', () => {
    const [ref] = refs('test', 3, 1) as [never];
    expect(createVisits()(ref).goal).toEqual(visits(ref).goal);
    expect(createVisits()(ref).shop.products).toEqual(visits(ref).shop.products);
  });
});

const offered = (product: Product, goal: Goal): Record<string, string> =>
  Object.fromEntries(
    Object.entries(goal.options).filter(([kind, value]) => product.options[kind]?.includes(value)),
  );
