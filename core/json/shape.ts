import type { Json } from './json.ts';

/**
 * What a message must look like: `shape(value, at)` says what is wrong with a value and where (`ask.cost.usd: must be a
 * number`), or null. For what reaches a workflow from outside, where zod would be loaded once for every cached workflow.
 */
export interface Shape<T> {
  (value: unknown, at: string): string | null;
  /** Never there: it keeps the type that a value of this shape has. */
  readonly of?: T;
}

const must =
  (holds: (value: unknown) => boolean, what: string) =>
  (value: unknown, at: string): string | null =>
    holds(value) ? null : `${at}: must be ${what}`;

const isNumber = (value: unknown): value is number => Number.isFinite(value);

/** Longest text of a message, characters; names and keys are far shorter. */
const LONGEST = 10_000;

export const text: Shape<string> = must(
  (value) => typeof value === 'string' && value.length <= LONGEST,
  `a text of at most ${LONGEST} characters`,
);
export const name: Shape<string> = must(
  (value) => typeof value === 'string' && value !== '' && value.length <= 1000,
  'a name',
);
export const digest: Shape<string> = must(
  (value) => typeof value === 'string' && /^[0-9a-f]{64}$/.test(value),
  'a SHA-256 in lower-case hex',
);
export const finite: Shape<number> = must(isNumber, 'a number');
export const amount: Shape<number> = must((value) => isNumber(value) && value >= 0, 'a number from 0 on');
export const between = (least: number, most: number): Shape<number> =>
  must((value) => isNumber(value) && value >= least && value <= most, `a number from ${least} to ${most}`);
export const natural: Shape<number> = must(
  (value) => Number.isSafeInteger(value) && (value as number) >= 0,
  'a whole number from 0 on',
);
/** Of a flag that is left out where it does not hold. */
export const yes: Shape<true> = must((value) => value === true, 'true');
/** Whatever JSON can say. */
export const anything: Shape<Json> = must((value) => value !== undefined, 'there');

export const oneOf = <const T extends string>(...words: readonly T[]): Shape<T> =>
  must(
    (value) => words.includes(value as T),
    `one of ${words.map((word) => JSON.stringify(word)).join(', ')}`,
  );

export function nullable<T>(shape: Shape<T>): Shape<T | null> {
  return (value, at) => (value === null ? null : shape(value, at));
}

export function optional<T>(shape: Shape<T>): Shape<T | undefined> {
  return (value, at) => (value === undefined ? null : shape(value, at));
}

export function list<T>(shape: Shape<T>): Shape<T[]> {
  return (value, at) =>
    Array.isArray(value)
      ? first(value.map((one, i) => () => shape(one, `${at}[${i}]`)))
      : `${at}: must be a list`;
}

/** Any names, all with values of one shape. */
export function record<T>(shape: Shape<T>): Shape<Record<string, T>> {
  return (value, at) =>
    isObject(value)
      ? first(
          Object.entries(value).map(
            ([field, one]) =>
              () =>
                shape(one, `${at}.${field}`),
          ),
        )
      : `${at}: must be an object`;
}

/** At least these fields; what nobody asks for is let pass. */
export function object<T extends object>(fields: {
  [Field in keyof Required<T>]: Shape<T[Field & keyof T]>;
}): Shape<T> {
  const shapes = Object.entries<Shape<unknown>>(fields);
  return (value, at) =>
    isObject(value)
      ? first(
          shapes.map(
            ([field, shape]) =>
              () =>
                shape(value[field], `${at}.${field}`),
          ),
        )
      : `${at}: must be an object`;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function first(checks: readonly (() => string | null)[]): string | null {
  for (const check of checks) {
    const problem = check();
    if (problem !== null) return problem;
  }
  return null;
}
