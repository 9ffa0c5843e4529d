import type { RandomStream } from '../../../core/random.ts';
import type { Data } from '../../sandbox/webassembly/function-run.ts';
import { property } from './numbers.ts';
import { problemOf, type NearMiss, type Problem, type Step } from './problem.ts';

// Functions of a list of whole numbers: which of them, what of each, and what of all.

type Numbers = readonly number[];

/** Written behind what is there. */
const behind = <In extends Data, Out extends Data | undefined>(
  code: string,
  of: (given: In) => Out,
): NearMiss<In, Out> => ({ write: (inner) => inner + code, of });

function keep(random: RandomStream): Step<Numbers, Numbers> {
  const found = property(random, 20);
  const one = ({ write, of }: Pick<typeof found, 'write' | 'of'>) =>
    behind(`.filter((x) => ${write('x')})`, (xs: Numbers) => xs.filter(of));
  return {
    ...one(found),
    say: () => `keep those that are ${found.said}`,
    misses: found.misses.map(one),
    marks: found.marks,
    keepsKind: true,
  };
}

function each(random: RandomStream): Step<Numbers, Numbers> {
  const k = random.int(2, 9);
  const one = (code: string, of: (x: number) => number) =>
    behind(`.map((x) => ${code})`, (xs: Numbers) => xs.map(of));
  const plus = one(`x + ${k}`, (x) => x + k);
  const minus = one(`x - ${k}`, (x) => x - k);
  const times = one(`x * ${k}`, (x) => x * k);
  const squared = one('x * x', (x) => x * x);
  const doubled = one('x * 2', (x) => x * 2);
  const absolute = one('Math.abs(x)', Math.abs);
  const negated = one('-x', (x) => -x);
  const step = (say: string, right: typeof plus, misses: (typeof plus)[]): Step<Numbers, Numbers> => ({
    ...right,
    say: () => `take ${say}`,
    misses,
    marks: [],
    keepsKind: true,
  });
  return random.pick([
    step(`each plus ${k}`, plus, [minus, times]),
    step(`each minus ${k}`, minus, [plus]),
    step(`each times ${k}`, times, [plus]),
    step('the square of each', squared, [doubled]),
    step('the absolute value of each', absolute, [negated]),
  ]);
}

const ascending = (xs: Numbers): number[] => xs.toSorted((a, b) => a - b);
/** As `sort()` does it, by letters. */
const byLetters = (xs: Numbers): number[] => xs.toSorted((a, b) => (String(a) < String(b) ? -1 : 1));
const sum = (xs: Numbers): number => xs.reduce((a, b) => a + b, 0);

/** What may stand for a number that is not there. */
const NONE = [-1, -2, -5, 99] as const;

/** What is made of all numbers; those that leave the list a list too. */
function all(random: RandomStream): Step<Numbers> {
  const none = random.pick(NONE);
  const step = (
    say: string,
    [code, of]: [string, (xs: Numbers) => Data],
    misses: [string, (xs: Numbers) => Data | undefined][],
    keepsKind = false,
  ): Step<Numbers> => ({
    ...behind(code, of),
    say: () => say,
    misses: misses.map(([code, of]) => behind(code, of)),
    marks: [],
    keepsKind,
  });
  const orNone = `or ${none} if there is none`;
  return random.pick([
    step(
      'give their sum',
      ['.reduce((a, b) => a + b, 0)', sum],
      [
        // It throws for an empty list.
        ['.reduce((a, b) => a + b)', (xs) => (xs.length === 0 ? undefined : sum(xs))],
        ['.length', (xs) => xs.length],
      ],
    ),
    step('give how many there are', ['.length', (xs) => xs.length], [['.length - 1', (xs) => xs.length - 1]]),
    step(
      `give the largest, ${orNone}`,
      [`.sort((a, b) => b - a)[0] ?? ${none}`, (xs) => ascending(xs).at(-1) ?? none],
      [
        ['.sort((a, b) => b - a)[0]', (xs) => ascending(xs).at(-1)],
        [`.sort((a, b) => b - a)[0] || ${none}`, (xs) => ascending(xs).at(-1) || none],
        [`.sort().at(-1) ?? ${none}`, (xs) => byLetters(xs).at(-1) ?? none],
      ],
    ),
    step(
      `give the smallest, ${orNone}`,
      [`.sort((a, b) => a - b)[0] ?? ${none}`, (xs) => ascending(xs)[0] ?? none],
      [
        ['.sort((a, b) => a - b)[0]', (xs) => ascending(xs)[0]],
        [`.sort()[0] ?? ${none}`, (xs) => byLetters(xs)[0] ?? none],
      ],
    ),
    step(
      `give the last, ${orNone}`,
      [`.at(-1) ?? ${none}`, (xs) => xs.at(-1) ?? none],
      [
        ['.at(-1)', (xs) => xs.at(-1)],
        [`[0] ?? ${none}`, (xs) => xs[0] ?? none],
      ],
    ),
    step(
      'give them from small to large',
      ['.sort((a, b) => a - b)', ascending],
      [['.sort()', byLetters]],
      true,
    ),
    step('give them in reverse order', ['.reverse()', (xs) => xs.toReversed()], [], true),
    step(
      'give each once, in the order in which they first come',
      ['.filter((x, i, all) => all.indexOf(x) === i)', (xs) => xs.filter((x, i) => xs.indexOf(x) === i)],
      [
        [
          '.filter((x, i, all) => all.lastIndexOf(x) === i)',
          (xs) => xs.filter((x, i) => xs.lastIndexOf(x) === i),
        ],
      ],
      true,
    ),
    step(
      'give every other one, beginning with the first',
      ['.filter((_, i) => i % 2 === 0)', (xs) => xs.filter((_, i) => i % 2 === 0)],
      [['.filter((_, i) => i % 2 === 1)', (xs) => xs.filter((_, i) => i % 2 === 1)]],
      true,
    ),
  ]);
}

export const oneOfAList = (random: RandomStream): Problem =>
  problemOf('xs', [random.pick([keep, each])(random), all(random)]);

export const twoOfAList = (random: RandomStream): Problem =>
  problemOf('xs', [...random.shuffle([keep, each]).map((draw) => draw(random)), all(random)]);

const LISTS = 160;
const LONGEST = 7;
const FAR = 25;

/** Lists of numbers around what matters, with repeats; the empty one among them. */
export function someLists(marks: readonly (number | string)[], random: RandomStream): number[][] {
  const around = marks.flatMap((k) => (typeof k === 'number' ? [k - 1, k, k + 1, -k, 2 * k] : []));
  const one = (): number =>
    random.uniform() < 0.5 ? random.pick([...around, 0, 1, -1]) : random.int(-FAR, FAR);
  const list = (): number[] => {
    const drawn = Array.from({ length: random.int(1, LONGEST) }, one);
    return random.uniform() < 0.3 ? [...drawn, drawn[0]!] : drawn;
  };
  return [[], ...Array.from({ length: LISTS }, list)];
}
