import { setTimeout as wait } from 'node:timers/promises';
import { z } from 'zod';
import { readTextUpTo } from '../../../core/byte-parts.ts';
import { GradusError, messageOf } from '../../../core/errors.ts';
import type { Json } from '../../../core/json/json.ts';
import { timeoutSignal } from '../../../core/timeout-signal.ts';

export interface ChatServer {
  /** Up to and without `/chat/completions`. */
  baseUrl: string;
  /** Sent as a bearer token, and taken out of everything that the server says. */
  apiKey?: string | undefined;
}

/** What became of a request: what the model wrote, or why no retry would bring it to write something better. */
export type Completion = { promptTokens?: number; completionTokens?: number } & (
  | { kind: 'text'; text: string }
  | { kind: 'abstained'; type: 'refused' | 'cut-off' | 'too-long'; reason: string }
);

export interface ChatCall {
  signal: AbortSignal;
  /** When there must be an answer, on the clock of `performance.now()`, milliseconds. */
  deadline: number;
}

type Busy = { kind: 'busy'; reason: string; afterSeconds?: number | undefined };

const ATTEMPTS = 4;
/** Before the second attempt, doubled before each other one, seconds. */
const FIRST_PAUSE = 0.5;
/** The longest pause that `Retry-After` may ask for, seconds: what is to be tried tomorrow is tried in an hour. */
const LONGEST_PAUSE = 3600;
/** An answer is some hundred bytes and a few kilobytes of thought; unpacked. */
const MOST_BYTES = 4 * 2 ** 20;
/** What a timer of Node can count, milliseconds. */
const LONGEST_TIMER = 2 ** 31 - 1;

/**
 * Asks an OpenAI-compatible server for one chat completion. What passes (no connection, 408, 409, 425, 429, 5xx, an
 * answer that is none) is tried again here, after `Retry-After` where the server names it, as long as the deadline allows.
 * Throws GradusError('verifier', 'judge-busy'), retryable, when that did not help, and GradusError('verifier',
 * 'judge-request') for what the server will refuse from anyone: a wrong address, key, model or field.
 */
export async function complete(server: ChatServer, body: Json, call: ChatCall): Promise<Completion> {
  for (let attempt = 1; ; attempt++) {
    const result = await completeOnce(server, body, call);
    if (result.kind !== 'busy') return result;
    const pause = result.afterSeconds ?? FIRST_PAUSE * 2 ** (attempt - 1);
    if (attempt === ATTEMPTS || performance.now() + pause * 1000 >= call.deadline) {
      throw new GradusError('verifier', 'judge-busy', `${server.baseUrl}: ${result.reason}`, {
        retryable: true,
        retryAfterSeconds: result.afterSeconds,
      });
    }
    await wait(pause * 1000, undefined, { signal: call.signal });
  }
}

async function completeOnce(server: ChatServer, body: Json, call: ChatCall): Promise<Completion | Busy> {
  const { baseUrl, apiKey } = server;
  const limit = Math.min(LONGEST_TIMER, Math.max(0, Math.ceil(call.deadline - performance.now())));
  const signal = AbortSignal.any([call.signal, timeoutSignal(limit)]);
  let response: Response;
  let text: string | undefined;
  try {
    response = await fetch(`${baseUrl.replace(/\/+$/, '')}/chat/completions`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
      },
      body: JSON.stringify(body),
      // Followed, a POST would become a GET, and the key might go elsewhere.
      redirect: 'manual',
      signal,
    });
    text = await readTextUpTo(response.body, MOST_BYTES);
  } catch (error) {
    call.signal.throwIfAborted();
    return { kind: 'busy', reason: withoutKey(inWords(error), apiKey) };
  }
  if (text === undefined) {
    const reason = `the server answered with more than ${MOST_BYTES / 2 ** 20} MB: none of it was read`;
    return { kind: 'abstained', type: 'cut-off', reason };
  }
  text = withoutKey(text, apiKey);
  return response.ok ? completionOf(text) : refusalOf(response, text, baseUrl);
}

const tokens = z.int().nonnegative().nullish();
const responseShape = z.object({
  choices: z
    .array(
      z.object({
        finish_reason: z.string().nullish(),
        message: z.object({ content: z.string().nullish(), refusal: z.string().nullish() }),
      }),
    )
    .min(1),
  usage: z.object({ prompt_tokens: tokens, completion_tokens: tokens }).nullish(),
});

function completionOf(text: string): Completion | Busy {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return { kind: 'busy', reason: `answered with something that is no JSON: ${shortened(text)}` };
  }
  const { data } = responseShape.safeParse(json);
  if (!data) return { kind: 'busy', reason: `answered with no chat completion: ${shortened(text)}` };
  const { message, finish_reason: finish } = data.choices[0]!;
  const spent = {
    ...(data.usage?.prompt_tokens == null ? {} : { promptTokens: data.usage.prompt_tokens }),
    ...(data.usage?.completion_tokens == null ? {} : { completionTokens: data.usage.completion_tokens }),
  };
  const abstained = (type: 'refused' | 'cut-off', reason: string): Completion => ({
    kind: 'abstained',
    type,
    reason,
    ...spent,
  });
  if (message.refusal) return abstained('refused', shortened(message.refusal));
  if (finish === 'content_filter')
    return abstained('refused', "the server's content filter stopped the answer");
  if (finish === 'length')
    return abstained('cut-off', 'the answer was cut off at maxTokens or the end of the context');
  return { kind: 'text', text: message.content ?? '', ...spent };
}

const PASSING = new Set([408, 409, 425, 429]);

function refusalOf(response: Response, text: string, baseUrl: string): Completion | Busy {
  const { status } = response;
  const reason = `answered ${status}: ${shortened(text)}`;
  const aboutFormat = /response_format|json_schema/.test(text);
  // The server of llama-cpp-python says 500 to a format that it does not know.
  if ((status >= 500 && !(status === 500 && aboutFormat)) || PASSING.has(status)) {
    return { kind: 'busy', reason, afterSeconds: retryAfterSeconds(response.headers.get('retry-after')) };
  }
  if (status === 413 || /context.{0,3}(length|window|size)|maximum context|too many tokens/i.test(text)) {
    return { kind: 'abstained', type: 'too-long', reason };
  }
  if (/content.?(filter|policy)/i.test(text)) return { kind: 'abstained', type: 'refused', reason };
  const advice =
    status === 401 || status === 403
      ? 'check the key that apiKeyEnv names'
      : aboutFormat
        ? "set responseFormat to what the server understands ('json_object' or 'text')"
        : "check baseUrl, model and the other options of the judge; 'body' changes or leaves out fields";
  throw new GradusError('verifier', 'judge-request', `${baseUrl} ${reason} — ${advice}.`);
}

/** Seconds, or a date (RFC 9110, 10.2.3); undefined for neither. */
function retryAfterSeconds(header: string | null): number | undefined {
  if (header === null) return undefined;
  const seconds = /^\s*\d+\s*$/.test(header) ? Number(header) : (Date.parse(header) - Date.now()) / 1000;
  return Number.isFinite(seconds) ? Math.min(LONGEST_PAUSE, Math.max(0, seconds)) : undefined;
}

function inWords(error: unknown): string {
  if (error instanceof Error && error.name === 'TimeoutError') return 'gave no answer within the time limit';
  const cause = error instanceof Error ? (error.cause as { code?: string } | undefined) : undefined;
  return `${messageOf(error)}${cause?.code === undefined ? '' : ` (${cause.code})`}`;
}

const shortened = (text: string): string => (text.length > 300 ? `${text.slice(0, 300)}…` : text);

/** What is shorter is no secret but a word such as `none`, which local servers are given. */
const SHORTEST_KEY = 8;

function withoutKey(text: string, apiKey: string | undefined): string {
  return apiKey === undefined || apiKey.length < SHORTEST_KEY ? text : text.replaceAll(apiKey, '[API key]');
}
