import type { RandomStream } from '../../../core/random.ts';
import { problemOf, type Problem, type Step } from './problem.ts';

// Functions of a whole number: one operation, and two.

type Number_ = Step<number, number>;

/** With brackets where it is more than a name. */
const operand = (inner: string): string => (/^\w+$/u.test(inner) ? inner : `(${inner})`);

const SIGNS = {
  '+': { of: (a: number, b: number) => a + b, said: ['X plus K', 'K more than X', 'the sum of X and K'] },
  '-': { of: (a: number, b: number) => a - b, said: ['X minus K', 'K less than X', 'X reduced by K'] },
  '*': { of: (a: number, b: number) => a * b, said: ['X times K', 'K times X', 'the product of X and K'] },
} as const;
type Sign = keyof typeof SIGNS;
const ALL_SIGNS = Object.keys(SIGNS) as Sign[];

/** Signed by `sign` with the constant k, right of it or left. */
function operation(random: RandomStream, most: number): Number_ {
  const sign = random.pick(ALL_SIGNS);
  const k = random.int(2, most);
  const turned = sign === '-' && random.uniform() < 0.5;
  const one = (sign: Sign, k: number, turned: boolean): Pick<Number_, 'write' | 'of'> => ({
    write: (inner) => (turned ? `${k} ${sign} ${operand(inner)}` : `${operand(inner)} ${sign} ${k}`),
    of: (x) => (turned ? SIGNS[sign].of(k, x) : SIGNS[sign].of(x, k)),
  });
  const phrase = turned ? random.pick(['K minus X', 'X taken from K']) : random.pick(SIGNS[sign].said);
  return {
    ...one(sign, k, turned),
    say: (inner) => phrase.replace('X', inner).replace('K', String(k)),
    misses: [
      ...ALL_SIGNS.filter((other) => other !== sign).map((other) => one(other, k, false)),
      one(sign, k + 1, turned),
      one(sign, k - 1, turned),
      ...(sign === '-' ? [one(sign, k, !turned)] : []),
    ],
    marks: [k],
    keepsKind: true,
  };
}

const square = (): Number_ => ({
  say: (inner) => `the square of ${inner}`,
  write: (inner) => `${operand(inner)} ** 2`,
  of: (x) => x ** 2,
  misses: [
    { write: (inner) => `${operand(inner)} * 2`, of: (x) => x * 2 },
    { write: (inner) => `${operand(inner)} ** 3`, of: (x) => x ** 3 },
  ],
  marks: [],
  keepsKind: true,
});

/** A property of a number, with the properties that are easily taken for it. */
interface Property {
  said: string;
  write: (inner: string) => string;
  of: (x: number) => boolean;
  misses: readonly Pick<Property, 'write' | 'of'>[];
  marks: readonly number[];
}

export function property(random: RandomStream, most: number): Property {
  const k = random.int(2, most);
  const by = random.int(3, 9);
  const compared = (sign: string, of: (x: number) => boolean): Pick<Property, 'write' | 'of'> => ({
    write: (inner) => `${inner} ${sign} ${k}`,
    of,
  });
  const [more, least, less, atMost] = [
    compared('>', (x) => x > k),
    compared('>=', (x) => x >= k),
    compared('<', (x) => x < k),
    compared('<=', (x) => x <= k),
  ];
  const divided = (by: number, sign: string, rest: number): Pick<Property, 'write' | 'of'> => ({
    write: (inner) => `${operand(inner)} % ${by} ${sign} ${rest}`,
    of: (x) => (x % by === rest) === (sign === '==='),
  });
  return random.pick<Property>([
    { said: `greater than ${k}`, ...more, misses: [least, less], marks: [k] },
    { said: `at least ${k}`, ...least, misses: [more, less], marks: [k] },
    { said: `less than ${k}`, ...less, misses: [atMost, more], marks: [k] },
    { said: `at most ${k}`, ...atMost, misses: [less, least], marks: [k] },
    {
      said: `divisible by ${by}`,
      ...divided(by, '===', 0),
      misses: [divided(by + 1, '===', 0), divided(by, '!==', 0)],
      marks: [by],
    },
    // The remainder of a negative number is not above 0.
    {
      said: 'odd',
      ...divided(2, '!==', 0),
      misses: [divided(2, '===', 1), divided(2, '===', 0)],
      marks: [2],
    },
    { said: 'even', ...divided(2, '===', 0), misses: [divided(2, '!==', 0)], marks: [2] },
  ]);
}

/** A last step: a comparison, a bound or a distance. */
function ending(random: RandomStream): Step<number> {
  const k = random.int(2, 99);
  const { said, ...found } = property(random, 99);
  const bounded = (name: 'max' | 'min', k: number) => ({
    write: (inner: string) => `Math.${name}(${inner}, ${k})`,
    of: (x: number) => Math[name](x, k),
  });
  return random.pick<Step<number>>([
    { ...found, say: (inner) => `whether ${inner} is ${said}`, keepsKind: false },
    {
      ...bounded('max', k),
      say: (inner) => `the larger of ${inner} and ${k}`,
      misses: [bounded('min', k), bounded('max', k + 1)],
      marks: [k],
      keepsKind: true,
    },
    {
      ...bounded('min', k),
      say: (inner) => `the smaller of ${inner} and ${k}`,
      misses: [bounded('max', k), bounded('min', k - 1)],
      marks: [k],
      keepsKind: true,
    },
    {
      say: (inner) => `how far ${inner} is from ${k}`,
      write: (inner) => `Math.abs(${inner} - ${k})`,
      of: (x) => Math.abs(x - k),
      misses: [
        { write: (inner) => `${inner} - ${k}`, of: (x) => x - k },
        { write: (inner) => `Math.abs(${inner}) - ${k}`, of: (x) => Math.abs(x) - k },
      ],
      marks: [k],
      keepsKind: true,
    },
  ]);
}

/** Largest constant of a single operation: with it, a thousand different functions. */
const MOST = 299;

export const oneOperation = (random: RandomStream): Problem =>
  problemOf('x', [random.uniform() < 0.02 ? square() : operation(random, MOST)]);

export const twoOperations = (random: RandomStream): Problem =>
  problemOf('x', [operation(random, 20), random.uniform() < 0.4 ? operation(random, 20) : ending(random)]);

const FAR = 120;

/** Whole numbers around what matters, and others. */
export function someNumbers(marks: readonly (number | string)[]): number[] {
  const around = marks.flatMap((k) => (typeof k === 'number' ? [k - 1, k, k + 1, -k, 2 * k, 3 * k] : []));
  return [...around, ...Array.from({ length: 2 * FAR + 1 }, (_, i) => i - FAR)];
}
