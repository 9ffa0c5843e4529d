import { Agent, request } from 'undici';
import type { z } from 'zod';
import { readUpTo } from '../../../core/byte-parts.ts';
import { GradusError, messageOf } from '../../../core/errors.ts';
import type { Json } from '../../../core/json/json.ts';

/** Of a piece of a turn with its log-probs; a probe has a few hundred tokens. */
const MOST_BYTES = 64 * 2 ** 20;
/** The longest pause that `Retry-After` may ask for, seconds. */
const LONGEST_PAUSE = 600;
const MOST_TEXT = 500;

/** For weights of many gigabytes, on a disk that others read, too; seconds. */
export const LOADING_SECONDS = 3600;

export interface ServerConnection {
  readonly url: string;
  /**
   * POSTs a body, bytes as protobuf; `null` is a GET. Returns what the answer says: JSON, or a text that is none, or bytes where
   * `accept` names protobuf and the server answers in it.
   */
  readonly ask: (
    path: string,
    body: Json | Uint8Array,
    signal: AbortSignal,
    seconds?: number,
    accept?: string,
  ) => Promise<unknown>;
  readonly close: () => Promise<void>;
}

/** What Tinker's API calls a protocol buffer. */
export const PROTOBUF = 'application/x-protobuf';
/** By its registered name, too. */
const PROTOBUF_TYPES: ReadonlySet<string> = new Set([PROTOBUF, 'application/protobuf']);

/** By which servers know who asks: most by the first, Tinker's API by the second. */
export const keyHeaders = (key: string | undefined): Record<string, string> =>
  key === undefined ? {} : { authorization: `Bearer ${key}`, 'x-api-key': key };

/**
 * JSON, or protobuf, to and from one server. Throws GradusError('policy', …): `server-away`, retryable, without an answer within
 * `seconds` and for 408, 409, 425, 429 and 5xx; `unknown-model`, retryable, for 404; `server-request` for other refusals.
 */
export function connect(url: string, seconds: number, apiKey?: string): ServerConnection {
  // The limits of this library's own are five minutes, which a long piece of a turn may take.
  const agent = new Agent({ headersTimeout: 0, bodyTimeout: 0, connect: { timeout: 10_000 } });
  const base = url.replace(/\/+$/, '');
  return {
    url: base,
    ask: async (path, body, signal, limit = seconds, accept) => {
      const at = `${base}${path}`;
      const { status, type, retryAfter, bytes } = await exchange(at, body, limit, signal, accept);
      const ok = status >= 200 && status < 300;
      if (ok && accept?.includes(PROTOBUF) && PROTOBUF_TYPES.has(type)) return bytes;
      const text = new TextDecoder().decode(bytes);
      if (ok) return parsed(text);
      throw refusal(at, status, text, retryAfter);
    },
    close: () => agent.destroy(),
  };

  async function exchange(
    at: string,
    body: Json | Uint8Array,
    limit: number,
    signal: AbortSignal,
    accept: string | undefined,
  ) {
    const binary = body instanceof Uint8Array;
    // This function holds it, because it asks it below. So nothing of it stays after the answer.
    const timeout = AbortSignal.timeout(Math.min(2 ** 31 - 1, Math.ceil(limit * 1000)));
    try {
      const response = await request(at, {
        dispatcher: agent,
        method: body === null ? 'GET' : 'POST',
        headers: {
          ...(body !== null && { 'content-type': binary ? PROTOBUF : 'application/json' }),
          ...(accept !== undefined && { accept }),
          ...keyHeaders(apiKey),
        },
        ...(body !== null && { body: binary ? body : JSON.stringify(body) }),
        signal: AbortSignal.any([signal, timeout]),
      });
      const { statusCode: status, headers } = response;
      const bytes = await readUpTo(response.body, MOST_BYTES);
      if (bytes === undefined) throw new Error(`an answer of more than ${MOST_BYTES / 2 ** 20} MB`);
      return {
        status,
        type: String(headers['content-type'] ?? '')
          .split(';')[0]!
          .trim()
          .toLowerCase(),
        retryAfter: retryAfterOf(headers['retry-after']),
        bytes,
      };
    } catch (error) {
      signal.throwIfAborted();
      const why = timeout.aborted ? `no answer within ${limit} s` : inWords(error);
      throw away(at, why, undefined, error);
    }
  }
}

/** Seconds of `Retry-After`; undefined without them. */
export function retryAfterOf(header: string | string[] | null | undefined): number | undefined {
  const seconds = Number(header);
  return seconds > 0 ? Math.min(seconds, LONGEST_PAUSE) : undefined;
}

/** Checks the shape of an answer. Throws GradusError('policy', 'server-answer'), retryable. */
export function answerOf<T>(schema: z.ZodType<T>, answer: unknown, what: string): T {
  const read = schema.safeParse(answer);
  if (read.success) return read.data;
  const { path, message } = read.error.issues[0]!;
  throw badAnswer(`${what}: ${path.join('.') || 'the answer'}: ${message}`);
}

export const badAnswer = (message: string): GradusError =>
  new GradusError('policy', 'server-answer', message, { retryable: true });

const away = (at: string, why: string, retryAfterSeconds?: number, cause?: unknown): GradusError =>
  new GradusError('policy', 'server-away', `${at}: ${why}`, { retryable: true, retryAfterSeconds, cause });

/** Another time the same may be answered otherwise. */
export const isAway = (status: number): boolean => status >= 500 || [408, 409, 425, 429].includes(status);

function refusal(at: string, status: number, text: string, retryAfter: number | undefined): GradusError {
  const why = `answered ${status}: ${text.slice(0, MOST_TEXT)}`;
  if (status === 404) return new GradusError('policy', 'unknown-model', `${at} ${why}`, { retryable: true });
  if (isAway(status)) return away(at, why, retryAfter);
  return new GradusError('policy', 'server-request', `${at} ${why}`);
}

function parsed(text: string): unknown {
  // Some routes say with the status alone that they have done it.
  if (text.trim() === '') return null;
  try {
    return JSON.parse(text);
  } catch {
    // Others say it in words.
    return text.slice(0, MOST_TEXT);
  }
}

function inWords(error: unknown): string {
  const cause = error instanceof Error && error.cause !== undefined ? `: ${messageOf(error.cause)}` : '';
  return `${messageOf(error) || 'no connection'}${cause}`;
}
