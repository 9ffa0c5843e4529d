import { createHash } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Ajv } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import type { ValidateFunction } from 'ajv';
import { z } from 'zod';
import { GradusError } from '../../core/errors.ts';
import type { Json } from '../../core/json/json.ts';
import type { JsonSchema, Tool } from '../contract/environment.ts';
import {
  assertBounded,
  CHECK,
  COMPILE,
  inBounds,
  LimitReached,
  maySlow,
  turnIsFull,
} from './bounded-check.ts';

/** Arguments as a tool takes them, or what is wrong with them and where. */
type Checked = { value: unknown } | { at: string; message: string };

/** Throws what a schema's own code throws, and what Ajv says of a schema that is none. */
export async function checkArguments({ arguments: schema }: Tool, given: Json): Promise<Checked> {
  if (schema instanceof z.ZodType) {
    const parsed = await schema.safeParseAsync(given);
    if (parsed.success) return { value: parsed.data };
    const { path, message } = parsed.error.issues[0]!;
    return { at: path.join('.'), message };
  }
  while (turnIsFull()) await nextTurn();
  return checkJson(schema, given);
}

/**
 * `limited`: the value may be large, so that any schema may take long. Throws what Ajv says of a schema that is none, and
 * LimitReached for one that takes too long, now or ever before.
 */
export function checkJson(schema: JsonSchema, given: unknown, { limited = false } = {}): Checked {
  const { digest, validate } = compiled(schema);
  const check = (): unknown => validate(given);
  try {
    if (limited || maySlow(schema) ? inBounds(check, CHECK) : check()) return { value: given };
  } catch (error) {
    // What else it throws is the value's doing.
    if (error instanceof LimitReached) remember(digest, error);
    throw error;
  }
  const { instancePath, message, params } = validate.errors![0]!;
  const extra: unknown = params['additionalProperty'];
  return {
    at: instancePath.slice(1).replaceAll('/', '.'),
    message: `${message ?? 'is wrong'}${typeof extra === 'string' ? ` (${extra})` : ''}`,
  };
}

/**
 * Throws where what is given as a JSON Schema of an object is none, LimitReached where it takes too long to compile, and
 * GradusError('infra', 'busy', retryable) where that cannot be said.
 */
export function assertSchema(schema: JsonSchema): void {
  if (schema?.type !== 'object') throw new TypeError('its type must be object');
  compiled(schema);
}

// Formats are advice in JSON Schema, and what others publish uses keywords of their own: neither is an error.
// What an object has from Object.prototype, such as `constructor`, nobody has given.
// What is referred to is compiled once, and not once for each reference.
// Its log is the code that it has made, megabytes of it.
const OPTIONS = {
  strict: false,
  validateFormats: false,
  ownProperties: true,
  inlineRefs: false,
  logger: false,
} as const;
const compilers: Record<'older' | 'newer', Ajv | undefined> = { older: undefined, newer: undefined };

interface Compiled {
  /** Of the schema's text. */
  digest: string;
  validate: ValidateFunction;
}

const validators = new WeakMap<JsonSchema, Compiled>();
/** By the digest: tools of a task are new objects with each task, and seldom new schemas. */
const recent = new Map<string, Compiled>();
const MOST_RECENT = 256;
/** Why schemas are of no use, by the digest: finding it out again would take as long. */
const useless = new Map<string, unknown>();
const MOST_USELESS = 4096;

function remember(digest: string, why: unknown): void {
  useless.set(digest, why);
  if (useless.size > MOST_USELESS) useless.delete(useless.keys().next().value!);
}

function compiled(schema: JsonSchema): Compiled {
  const known = validators.get(schema) ?? compiledByText(schema);
  if (useless.has(known.digest)) throw useless.get(known.digest);
  validators.set(schema, known);
  return known;
}

function compiledByText(schema: JsonSchema): Compiled {
  const text = JSON.stringify(schema);
  assertBounded(text);
  const digest = createHash('sha256').update(text).digest('base64');
  if (useless.has(digest)) throw useless.get(digest);
  const found = recent.get(digest) ?? { digest, validate: compiledAnew(schema, digest) };
  recent.delete(digest);
  recent.set(digest, found);
  if (recent.size > MOST_RECENT) recent.delete(recent.keys().next().value!);
  return found;
}

function compiledAnew(schema: JsonSchema, digest: string): ValidateFunction {
  const older = /draft-0[4-7]/.test(typeof schema['$schema'] === 'string' ? schema['$schema'] : '');
  const age = older ? 'older' : 'newer';
  let ajv: Ajv | undefined;
  // Two tools may have schemas of one $id, which a compiler would take for the same.
  const { $id: _, $schema: __, ...rest } = schema;
  try {
    return inBounds(() => {
      // One that was stopped in the middle is in no known state.
      if (ajv) compilers[age] = undefined;
      ajv = compilers[age] ??= older ? new Ajv(OPTIONS) : new Ajv2020(OPTIONS);
      return ajv.compile(rest);
    }, COMPILE);
  } catch (error) {
    const busy = error instanceof GradusError;
    if (busy || error instanceof RangeError) compilers[age] = undefined;
    // That the machine was busy says nothing of the schema.
    if (!busy) remember(digest, error);
    throw error;
  } finally {
    // It would keep each one for ever.
    ajv?.removeSchema(rest);
  }
}
