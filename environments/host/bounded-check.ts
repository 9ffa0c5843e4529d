import { setImmediate as nextTurn } from 'node:timers/promises';
import vm from 'node:vm';
import { GradusError } from '../../core/errors.ts';
import { isDeeperThan } from '../../core/json/levels.ts';
import type { JsonSchema } from '../contract/environment.ts';

// Schemas come from servers, too, and a JSON Schema is a program: a `pattern` may backtrack for ever, `$ref` may double the
// work at each of forty levels. What is honest takes less than a millisecond to check, and less than a second to compile.

const MOST_CHARACTERS = 100_000;
const MOST_LEVELS = 64;
const MOST_REFERENCES = 1000;
/** Less than what the event loop of a host may be kept for, milliseconds by the clock, by which V8 stops. */
const LIMIT_MS = 5000;

export interface Bounds {
  /** Milliseconds by the clock; twice as much in a second attempt. */
  limitMs?: number;
  /** What has had so much processor time until it is stopped is slow itself, milliseconds; else the machine is. */
  enoughMs?: number;
  /** How often work is begun that had less. */
  attempts?: number;
  /** What this process has had of the processors, milliseconds. */
  spentMs?: () => number;
}

/** An honest check takes a thousandth of that. */
export const CHECK = { attempts: 1, enoughMs: 500 } satisfies Bounds;
/** An honest schema compiles in less than a second. */
export const COMPILE = { attempts: 2, enoughMs: 1500 } satisfies Bounds;

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
  if (isDeeperThan(MOST_LEVELS, text)) throw new TypeError(`it has more than ${MOST_LEVELS} levels`);
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

function processorMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/**
 * Does what a schema asks for, within a limit in time that nothing honest comes near: V8 stops it, also in the middle of a
 * pattern. It costs a fifth of a millisecond. Throws LimitReached where the schema is slow, and GradusError('infra', 'busy',
 * retryable) where this process had too little processor time to say so.
 */
export function inBounds<T>(
  work: () => T,
  { limitMs = LIMIT_MS, enoughMs = CHECK.enoughMs, attempts = 1, spentMs = processorMs }: Bounds = {},
): T {
  for (let attempt = 1; ; attempt++) {
    const timeout = limitMs * 2 ** (attempt - 1);
    const before = spentMs();
    try {
      return inTime(work, timeout);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw error;
      const spent = spentMs() - before;
      if (spent >= enoughMs) {
        throw new LimitReached(
          `a JSON Schema took longer than ${limitMs / 1000} s, and is not used again: write its pattern without repetitions in repetitions, its references without doubling`,
          { cause: error },
        );
      }
      if (attempt < attempts) continue;
      const had = `${(spent / 1000).toFixed(1)} s of processor time in ${timeout / 1000} s`;
      throw new GradusError(
        'infra',
        'busy',
        `the machine is too busy to check a JSON Schema: this process had ${had}; run it again when less runs beside it`,
        { retryable: true, cause: error },
      );
    }
  }
}

function inTime<T>(work: () => T, timeout: number): T {
  within.work = work;
  const begun = performance.now();
  try {
    return script.runInContext(within, { timeout }) as T;
  } finally {
    delete within.work;
    if (taken === 0) void nextTurn().then(() => (taken = 0));
    taken += performance.now() - begun;
  }
}
