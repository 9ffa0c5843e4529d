import { setImmediate as nextTurn } from 'node:timers/promises';
import vm from 'node:vm';
import type { JsonSchema } from '../contract.ts';

// Schemas come from servers, too, and a JSON Schema is a program: a `pattern` may backtrack for ever, `$ref` may double the
// work at each of forty levels. What is honest takes less than a millisecond to check, and less than a second to compile.

const MOST_CHARACTERS = 100_000;
const MOST_LEVELS = 64;
const MOST_REFERENCES = 1000;
/** Less than what the event loop of a host may be kept for, milliseconds. */
const LIMIT_MS = 5000;

/** What takes longer than the size of schema and value explains. Without it small values need no limit. */
const SLOW = /"(?:pattern|patternProperties|\$ref|\$dynamicRef|\$recursiveRef|uniqueItems|contains)":/u;

/** Throws TypeError where a schema, as JSON, is larger than any that a person has written. */
export function assertBounded(text: string): void {
  if (text.length > MOST_CHARACTERS) {
    throw new TypeError(`it has ${text.length} characters as JSON, and may have ${MOST_CHARACTERS}`);
  }
  const references = text.match(/"\$(?:ref|dynamicRef|recursiveRef)":/gu)?.length ?? 0;
  if (references > MOST_REFERENCES) {
    throw new TypeError(`it has ${references} references, and may have ${MOST_REFERENCES}`);
  }
  let level = 0;
  // Brackets in strings are none.
  for (const [one] of text.matchAll(/"(?:[^"\\]|\\.)*"|[[\]{}]/gu)) {
    if (one === '{' || one === '[') level++;
    else if (one === '}' || one === ']') level--;
    if (level > MOST_LEVELS) throw new TypeError(`it has more than ${MOST_LEVELS} levels`);
  }
}

const slow = new WeakMap<JsonSchema, boolean>();

/** Whether checking even a small value by a schema may take long. */
export function maySlow(schema: JsonSchema): boolean {
  let known = slow.get(schema);
  if (known === undefined) slow.set(schema, (known = SLOW.test(JSON.stringify(schema))));
  return known;
}

/** A schema has reached the limit in time. */
export class LimitReached extends RangeError {}

/** What checks have taken in this turn of the event loop, milliseconds. */
let taken = 0;
const MOST_IN_A_TURN_MS = 500;

/** Whether another check would keep this turn of the event loop for too long: many do as one long one does. */
export const turnIsFull = (): boolean => taken > MOST_IN_A_TURN_MS;

const within: { work?: () => unknown } = vm.createContext({});
const script = new vm.Script('work()');

/**
 * Does what a schema asks for, within a limit in time that nothing honest comes near: V8 stops it, also in the middle of a
 * pattern. It costs a fifth of a millisecond. Throws LimitReached.
 */
export function inBounds<T>(work: () => T): T {
  within.work = work;
  const begun = performance.now();
  try {
    return script.runInContext(within, { timeout: LIMIT_MS }) as T;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw error;
    throw new LimitReached(
      `a JSON Schema took longer than ${LIMIT_MS / 1000} s, and is not used again: write its pattern without repetitions in repetitions, its references without doubling`,
      { cause: error },
    );
  } finally {
    delete within.work;
    if (taken === 0) void nextTurn().then(() => (taken = 0));
    taken += performance.now() - begun;
  }
}
