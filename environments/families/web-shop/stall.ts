import type { RandomStream } from '../../../core/random.ts';
import type { Level } from './levels.ts';
import { titleOf, type Goal, type Product } from './product.ts';

// Few words, so that each becomes one token.
const TYPES = ['mug', 'bowl', 'pan', 'lamp', 'chair', 'table', 'rug', 'vase', 'clock', 'bench'];
const ATTRIBUTES = ['steel', 'glass', 'oak', 'wool', 'clay', 'stone', 'brass', 'cork', 'bamboo', 'linen'];
const COLOURS = ['red', 'blue', 'green', 'black', 'white', 'pink'];
const LETTERS = 'abcdefghijklmnopqrstuvwxyz'.split('');

/**
 * A few products and what a customer wants of them: exactly one fits, and others come near. The rest shares its type, or
 * its attribute, or has no such option, or costs too much.
 */
export function makeStall(level: Level, random: RandomStream): { products: Product[]; goal: Goal } {
  const ids = random.shuffle([...LETTERS]);
  const type = random.pick(TYPES);
  const attribute = random.pick(ATTRIBUTES);
  const colour = random.pick(COLOURS);
  const limit = level.priced ? random.int(20, 80) : null;
  const others = <T>(all: readonly T[], not: T): T => random.pick(all.filter((one) => one !== not));

  const make = (
    what: Pick<Product, 'type'> & { attribute: string; colours: string[]; dollars: number },
  ): Product => ({
    id: ids.pop()!,
    department: 'stall',
    type: what.type,
    brand: null,
    attributes: [what.attribute],
    titled: 1,
    options: level.options[1] === 0 ? {} : { colour: what.colours },
    price: what.dollars * 100,
  });
  const colours = (): string[] => random.shuffle([...COLOURS]).slice(0, 3);
  const dollars = (): number => random.int(5, 99);
  const wanted = make({
    type,
    attribute,
    colours: random.shuffle([colour, ...random.shuffle(COLOURS.filter((one) => one !== colour)).slice(0, 2)]),
    dollars: limit === null ? dollars() : random.int(5, limit),
  });
  // What comes near comes first; the rest is chance.
  const near = [
    ...(limit === null
      ? []
      : [
          {
            type,
            attribute,
            colours: wanted.options['colour'] as string[],
            dollars: random.int(limit + 1, 99),
          },
        ]),
    { type, attribute: others(ATTRIBUTES, attribute), colours: colours(), dollars: dollars() },
    { type: others(TYPES, type), attribute, colours: colours(), dollars: dollars() },
  ];
  const products = [wanted, ...near.map(make)].slice(0, level.products);
  while (products.length < level.products) {
    const one = make({
      type: others(TYPES, type),
      attribute: random.pick(ATTRIBUTES),
      colours: colours(),
      dollars: dollars(),
    });
    // Where links say titles, no two say the same.
    if (level.links === 'ids' || products.every((other) => titleOf(other) !== titleOf(one)))
      products.push(one);
  }
  return {
    products: random.shuffle(products),
    goal: {
      department: 'stall',
      type,
      attributes: [attribute],
      options: level.options[1] === 0 ? {} : { colour },
      priceLimit: limit === null ? null : limit * 100,
    },
  };
}
