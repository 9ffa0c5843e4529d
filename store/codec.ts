import type { z } from 'zod';
import { GradusError, messageOf } from '../core/errors.ts';
import type { Json } from '../core/json/json.ts';
import { inTurns } from '../engine/in-pieces.ts';
import { jsonInPieces } from './json-in-pieces.ts';

/** How values of one kind lie in the store. What `encode` writes `decode` reads back as the same. */
export interface Codec<T> {
  contentType: string;
  encode(value: T): Uint8Array | Promise<Uint8Array>;
  /** Checks what it reads; `key` is for the message. Throws a GradusError at the boundary `store`, not retryable. */
  decode(bytes: Uint8Array, key: string): T;
}

const JSON_TYPE = 'application/json';

/**
 * JSON with the keys in the order in which they were set; `check` throws for what is no T. `written` is what a value is
 * written as, where `check` makes something else of what it reads.
 */
export function checkedJson<T extends object>(
  check: (json: Json, key: string) => T,
  written: (value: T) => object = (value) => value,
): Codec<T> {
  return {
    contentType: JSON_TYPE,
    encode: async (value) => new TextEncoder().encode(await inTurns(jsonInPieces(written(value)))),
    decode: (bytes, key) => check(parseJson(bytes, key), key),
  };
}

/**
 * JSON that a schema knows. What is read is handed on as it lies there: the schema refuses, and changes nothing.
 * Throws GradusError('store', 'invalid-object') for what is not `what`.
 */
export const jsonCodec = <T extends object>(what: string, schema: z.ZodType): Codec<T> =>
  checkedJson((json, key) => {
    const { error } = schema.safeParse(json);
    if (!error) return json as unknown as T;
    const { path, message } = error.issues[0]!;
    throw new GradusError(
      'store',
      'invalid-object',
      `${key} is not ${what}: ${[...path, message].join(': ')}. It was written by other software, or another version`,
      { cause: error },
    );
  });

/** Throws GradusError('store', 'corrupt-object') for what is not JSON. */
export function parseJson(bytes: Uint8Array, key: string): Json {
  try {
    return JSON.parse(new TextDecoder().decode(bytes)) as Json;
  } catch (cause) {
    throw new GradusError(
      'store',
      'corrupt-object',
      `${key} is not JSON (${messageOf(cause)}): it was written by other software`,
      { cause },
    );
  }
}
