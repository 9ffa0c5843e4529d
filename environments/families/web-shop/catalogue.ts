import { RandomStream } from '../../../core/random.ts';
import { BRANDS, DEPARTMENTS } from './departments.ts';
import type { Product } from './product.ts';

/** How many products the big shop has. */
export const CATALOGUE_SIZE = 5000;

/** The big shop: the same products each time. */
export function makeCatalogue(): Product[] {
  const ids = new RandomStream('web-shop', 'ids').shuffle(
    Array.from({ length: 9000 }, (_, i) => String(1000 + i)),
  );
  return Array.from({ length: CATALOGUE_SIZE }, (_, i) => makeProduct(ids[i]!, i));
}

function makeProduct(id: string, index: number): Product {
  const random = new RandomStream('web-shop', 'product', index);
  const department = random.pick(DEPARTMENTS);
  const [low, high] = department.prices;
  const attributes = random.shuffle([...department.attributes]).slice(0, random.int(2, 4));
  // Most products are cheap: the logarithm is what is spread evenly.
  const dollars = Math.floor(low * (high / low) ** random.uniform());
  return {
    id,
    department: department.name,
    type: random.pick(department.types),
    brand: random.pick(BRANDS),
    attributes,
    titled: random.int(1, 2),
    options: Object.fromEntries(
      Object.entries(department.options).map(([kind, values]) => [
        kind,
        inOrder(values, random.shuffle([...values]).slice(0, random.int(2, Math.min(4, values.length)))),
      ]),
    ),
    price: dollars * 100 + random.pick([0, 49, 95, 99]),
  };
}

const inOrder = (all: readonly string[], some: readonly string[]): string[] =>
  all.filter((one) => some.includes(one));
