import { Ajv } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import type { ValidateFunction } from 'ajv';
import { z } from 'zod';
import type { Json } from '../../core/json/json.ts';
import type { JsonSchema, Tool } from '../contract.ts';
import { assertBounded, inBounds } from './bounded-check.ts';

/** Arguments as a tool takes them, or what is wrong with them and where. */
export type Checked = { value: unknown } | { at: string; message: string };

/** Throws what a schema's own code throws, and what Ajv says of a schema that is none. */
export async function checkArguments({ arguments: schema }: Tool, given: Json): Promise<Checked> {
  if (schema instanceof z.ZodType) {
    const parsed = await schema.safeParseAsync(given);
    if (parsed.success) return { value: parsed.data };
    const { path, message } = parsed.error.issues[0]!;
    return { at: path.join('.'), message };
  }
  return checkJson(schema, given);
}

/** Throws what Ajv says of a schema that is none, and RangeError for one that takes too long. */
export function checkJson(schema: JsonSchema, given: unknown): Checked {
  const validate = compiled(schema);
  if (inBounds(schema, () => validate(given))) return { value: given };
  const { instancePath, message, params } = validate.errors![0]!;
  const extra: unknown = params['additionalProperty'];
  return {
    at: instancePath.slice(1).replaceAll('/', '.'),
    message: `${message ?? 'is wrong'}${typeof extra === 'string' ? ` (${extra})` : ''}`,
  };
}

/** Throws where what is given as a JSON Schema of an object is none. */
export function assertSchema(schema: JsonSchema): void {
  if (schema?.type !== 'object') throw new TypeError('its type must be object');
  compiled(schema);
}

// Formats are advice in JSON Schema, and what others publish uses keywords of their own: neither is an error.
// What an object has from Object.prototype, such as `constructor`, nobody has given.
// What is referred to is compiled once, and not once for each reference.
const OPTIONS = { strict: false, validateFormats: false, ownProperties: true, inlineRefs: false } as const;
const compilers: Record<'older' | 'newer', Ajv | undefined> = { older: undefined, newer: undefined };
const validators = new WeakMap<JsonSchema, ValidateFunction>();
/** By the schema's text: tools of a task are new objects with each task, and seldom new schemas. */
const recent = new Map<string, ValidateFunction>();
const MOST_RECENT = 256;

function compiled(schema: JsonSchema): ValidateFunction {
  const known = validators.get(schema);
  if (known) return known;
  const text = JSON.stringify(schema);
  assertBounded(text);
  const validate = recent.get(text) ?? compiledAnew(schema);
  recent.delete(text);
  recent.set(text, validate);
  if (recent.size > MOST_RECENT) recent.delete(recent.keys().next().value!);
  validators.set(schema, validate);
  return validate;
}

function compiledAnew(schema: JsonSchema): ValidateFunction {
  const older = /draft-0[4-7]/.test(typeof schema['$schema'] === 'string' ? schema['$schema'] : '');
  const age = older ? 'older' : 'newer';
  const ajv = (compilers[age] ??= older ? new Ajv(OPTIONS) : new Ajv2020(OPTIONS));
  // Two tools may have schemas of one $id, which a compiler would take for the same.
  const { $id: _, $schema: __, ...rest } = schema;
  try {
    return inBounds(rest, () => ajv.compile(rest));
  } catch (error) {
    // One that was stopped in the middle is in no known state.
    if (error instanceof RangeError) compilers[age] = undefined;
    throw error;
  } finally {
    // It would keep each one for ever.
    ajv.removeSchema(rest);
  }
}
