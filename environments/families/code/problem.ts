import type { RandomStream } from '../../../core/random.ts';
import type { Data } from '../../sandbox/webassembly/function-run.ts';

/** What is near a step and wrong: written otherwise, with what it gives; it may throw, as its code would. */
export interface NearMiss<In extends Data = Data, Out extends Data | undefined = Data | undefined> {
  write: (inner: string) => string;
  of: (given: In) => Out;
}

/** One thing that a function does: as it is said of what is there by then, as JavaScript writes it, and what it gives. */
export interface Step<In extends Data = Data, Out extends Data = Data> extends NearMiss<In, Out> {
  say: (inner: string) => string;
  misses: readonly NearMiss<In>[];
  /** Numbers and letters around which it matters what is given. */
  marks: readonly (number | string)[];
  /** Whether what it gives is of the kind that it takes, so that a function without it is one. */
  keepsKind: boolean;
}

/** A function as it is asked for, with near misses of it: each is another function, as its hidden tests show. */
export interface Problem {
  said: string;
  code: string;
  of: (given: Data) => Data;
  misses: readonly { code: string; of: (given: Data) => Data | undefined }[];
  marks: readonly (number | string)[];
}

// A step takes what the one before gives: who draws them sees to that, and nothing is read by its type here.
type AnyStep = Step<never>;

/** Steps one after the other, of the argument `name`. */
export function problemOf(name: string, drawn: readonly AnyStep[]): Problem {
  const steps = drawn as unknown as readonly Step[];
  type Part = NearMiss;
  const codeOf = (parts: readonly Part[]) =>
    `${name} => ${parts.reduce((inner, { write }) => write(inner), name)}`;
  const resultOf = (parts: readonly Part[]) => (given: Data) =>
    parts.reduce<Data | undefined>((value, { of }) => of(value!), given);
  const replaced = steps.flatMap(({ misses }, at) =>
    misses.map((miss): Part[] => steps.with(at, miss as Step)),
  );
  // Without one of them, and at last without all: the argument itself.
  const left = steps.flatMap(({ keepsKind }, at) => (keepsKind ? [steps.filter((_, i) => i !== at)] : []));
  return {
    said: steps.map(({ say }, i) => say(i === 0 ? name : 'that')).join(', then '),
    code: codeOf(steps),
    of: resultOf(steps) as (given: Data) => Data,
    misses: [...replaced, ...left, []].map((parts) => ({ code: codeOf(parts), of: resultOf(parts) })),
    marks: steps.flatMap(({ marks }) => marks),
  };
}

export interface Test {
  given: Data;
  want: Data;
}

/** What a policy is shown of a function, and what it is judged by: other arguments. */
export interface Tests {
  visible: readonly Test[];
  hidden: readonly Test[];
}

/** Hidden tests of a function, at least. */
const HIDDEN = 12;
/** Of all hidden tests, what one constant may pass at most. */
const CONSTANT_SHARE = 0.5;

/**
 * Tests with arguments of a pool: each near miss fails one that is hidden, and no constant passes more than half of those.
 * Undefined where the pool has none such, as where a near miss is the same function.
 */
export function testsOf(
  { of, misses }: Problem,
  pool: readonly Data[],
  shown: number,
  random: RandomStream,
): Tests | undefined {
  const known = new Map(pool.map((given) => [textOf(given), { given, want: of(given) }]));
  const all = random.shuffle([...known.values()]);
  const visible = distinct(all.filter(({ given }) => !isEmpty(given))).slice(0, shown);
  const rest = all.filter((one) => !visible.includes(one));
  const hidden: Test[] = [];
  for (const miss of misses) {
    const tells = (test: Test): boolean => !passes(miss.of, test);
    if (hidden.some(tells)) continue;
    const found = rest.find(tells);
    if (found === undefined) return undefined;
    hidden.push(found);
  }
  for (const test of rest) {
    if (hidden.length >= HIDDEN) break;
    const same = hidden.filter(({ want }) => isSame(want, test.want)).length;
    if (!hidden.includes(test) && same < HIDDEN * CONSTANT_SHARE) hidden.push(test);
  }
  const isEnough = visible.length === shown && hidden.length >= HIDDEN;
  if (!isEnough || passedByConstant(hidden) > hidden.length * CONSTANT_SHARE) return undefined;
  return { visible, hidden };
}

const isEmpty = (given: Data): boolean => typeof given === 'object' && given.length === 0;

/** Those with results that no other has before them, then the others. */
function distinct(tests: readonly Test[]): Test[] {
  const first = tests.filter(({ want }, i) => tests.findIndex((other) => isSame(other.want, want)) === i);
  return [...first, ...tests.filter((test) => !first.includes(test))];
}

function passes(of: (given: Data) => Data | undefined, { given, want }: Test): boolean {
  try {
    const value = of(given);
    return value !== undefined && isSame(value, want);
  } catch {
    return false;
  }
}

/** How many tests the best of all constants passes. */
export const passedByConstant = (tests: readonly Test[]): number =>
  Math.max(...tests.map(({ want }) => tests.filter((other) => isSame(other.want, want)).length));

/** Whether two values are the same; 0 is −0, and nothing is the same as what is no number. */
export const isSame = (a: Data, b: Data): boolean =>
  typeof a === 'object' && typeof b === 'object'
    ? a.length === b.length && a.every((part, i) => isSame(part, b[i]!))
    : a === b;

/** As the policy reads it, and as JavaScript writes it. */
export const textOf = (value: Data): string =>
  typeof value === 'object' ? `[${value.map(textOf).join(', ')}]` : JSON.stringify(value);
