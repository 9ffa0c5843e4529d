import { setTimeout as pause } from 'node:timers/promises';
import type { z } from 'zod';
import { readTextUpTo } from '../../../core/byte-parts.ts';
import { GradusError, messageOf } from '../../../core/errors.ts';
import type { Json } from '../../../core/json/json.ts';
import { isDeeperThan } from '../../../core/json/levels.ts';

// Requests to somebody else's server of environments. What goes wrong between it and us, or in it, is a GradusError of the
// boundary `environment`: never an observation, and never a reward of zero.

/** How long it may take to say what there is (tools, tasks, a prompt), milliseconds. */
export const LOOKUP_MS = 30_000;

/** Longest answer that is read, bytes; of a stream the longest event. */
export const LONGEST_RESPONSE = 16 * 2 ** 20;
/** Levels of objects and arrays that an answer may have: far fewer than what recursive code can take. */
export const MOST_LEVELS = 256;

interface Asked {
  method?: 'GET' | 'POST';
  body?: Json;
  headers?: Record<string, string>;
  signal: AbortSignal;
}

/**
 * One request. Answers of 4xx are the caller's to judge.
 * Throws GradusError('environment', 'server-unreachable' | 'server-error', retryable), 'server-answer' for one that leads
 * elsewhere, and the signal's reason.
 */
export async function request(
  url: string,
  { method = 'POST', body, headers, signal }: Asked,
): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(url, {
      method,
      signal,
      // Where it leads, keys and rows would go along.
      redirect: 'manual',
      headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
  } catch (cause) {
    signal.throwIfAborted();
    throw unreachable(url, cause);
  }
  if (response.status >= 300 && response.status < 400) {
    await response.body?.cancel();
    throw wrongAnswer(url, `${response.status}, which leads elsewhere: give the address that it leads to`);
  }
  if (response.status < 500) return response;
  throw new GradusError(
    'environment',
    'server-error',
    `${url} answered ${response.status}: ${shown(await responseText(url, response, signal))}`,
    { retryable: true },
  );
}

/**
 * The whole text of an answer. Throws GradusError('environment', 'server-unreachable') where it breaks off, and
 * GradusError('environment', 'server-answer') where it is longer than LONGEST_RESPONSE.
 */
export async function responseText(url: string, response: Response, signal: AbortSignal): Promise<string> {
  let text: string | undefined;
  try {
    text = await readTextUpTo(response.body, LONGEST_RESPONSE);
  } catch (cause) {
    signal.throwIfAborted();
    throw unreachable(url, cause);
  }
  if (text === undefined) throw tooLong(url);
  return text;
}

/**
 * An answer of 2xx as JSON of a shape.
 * Throws what `request` throws, and GradusError('environment', 'server-answer') where it is anything else.
 */
export async function requestJson<T>(url: string, shape: z.ZodType<T>, asked: Asked): Promise<T> {
  const response = await request(url, asked);
  const text = await responseText(url, response, asked.signal);
  if (!response.ok) throw wrongAnswer(url, `${response.status}: ${shown(text)}`);
  return readResponse(url, shape, text);
}

/** Throws GradusError('environment', 'server-answer') where a text is no JSON of the shape. */
export function readResponse<T>(from: string, shape: z.ZodType<T>, text: string): T {
  if (isDeeperThan(MOST_LEVELS, text)) throw wrongAnswer(from, `JSON of more than ${MOST_LEVELS} levels`);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw wrongAnswer(from, `${shown(text)}, which is no JSON (${messageOf(error)})`);
  }
  const read = shape.safeParse(value);
  if (read.success) return read.data;
  const { path, message } = read.error.issues[0]!;
  throw wrongAnswer(from, `${shown(text)}, where ${path.join('.') || 'it'} is wrong: ${message}`);
}

/** An answer that the protocol does not have. What the call did, if anything, is not known. */
export const wrongAnswer = (from: string, what: string): GradusError =>
  new GradusError('environment', 'server-answer', `${from} answered ${what}`, { retryable: true });

export const tooLong = (from: string): GradusError =>
  wrongAnswer(from, `more than ${LONGEST_RESPONSE} bytes`);

export const unreachable = (url: string, cause: unknown): GradusError =>
  new GradusError(
    'environment',
    'server-unreachable',
    `${url} is not reached (${reasonOf(cause)}): is the server up, and the address right?`,
    { retryable: true, cause },
  );

/** The session that a server kept is gone. Tried again it is opened anew, where its environment says so. */
export const sessionLost = (what: string): GradusError =>
  new GradusError('environment', 'session-lost', what, { retryable: true });

/** Tries again, after pauses that double, what failed because nobody listened: a server that is just starting, or lets a kept connection go. */
export async function untilReached<T>(
  signal: AbortSignal,
  attempts: number,
  ask: () => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await ask();
    } catch (error) {
      const away = error instanceof GradusError && error.type === 'server-unreachable';
      if (!away || attempt >= attempts) throw error;
      await pause(100 * 2 ** attempt, undefined, { signal });
    }
  }
}

/** `undici` says why only in the causes of its errors. */
function reasonOf(error: unknown): string {
  const { cause } = error as { cause?: unknown };
  return cause === undefined ? messageOf(error) : `${messageOf(error)}: ${reasonOf(cause)}`;
}

/** An address with a path below it, whether or not it ends in a slash. */
export const below = (url: string, path: string): string => `${url.replace(/\/+$/u, '')}/${path}`;

export const shown = (text: string): string =>
  text.length > 300 ? `${text.slice(0, 300)}… (${text.length} characters)` : text;
