import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { z } from 'zod';
import { PROTOBUF } from '../../../activities/rollout/served/connection.ts';
import type { Json } from '../../../core/json/json.ts';

export interface Call {
  method: string;
  path: string;
  query: URLSearchParams;
  /** Parsed; undefined where there was none, and of protobuf. */
  body: Json | undefined;
  /** Of a body in protobuf. */
  bytes: Uint8Array | undefined;
  headers: IncomingHttpHeaders;
}

export interface Answer {
  status: number;
  /** JSON, but a string as it is, and protobuf as bytes; absent: no body. */
  body?: Json | Uint8Array;
  headers?: Record<string, string>;
}

export type Route = (call: Call) => Answer | Promise<Answer>;

/** Routes by `METHOD /path`. */
export interface Dialect {
  routes: Record<string, Route>;
  /** Paths that answer tokens: faults of the wire and of answers are about them. */
  tokenPaths: readonly string[];
  /** How the server says that something was wrong. */
  error: (status: number, message: string) => Answer;
  /** How it refuses when its queue is full. */
  queueFull: Answer;
}

/** The server refuses, in its dialect's words. */
export class Refusal extends Error {
  readonly answer: Answer;

  constructor(answer: Answer) {
    super(JSON.stringify(answer.body));
    this.answer = answer;
  }
}

/** What the server runs on is gone: it answers this, and ends. */
export class EngineDead extends Error {}

export const ok = (body?: Json): Answer => ({ status: 200, ...(body !== undefined && { body }) });

/** The body by its schema. Throws Refusal: 400, as both servers answer a field that is wrong. */
export function bodyOf<T>(schema: z.ZodType<T>, { body }: Call, error: Dialect['error']): T {
  const read = schema.safeParse(body ?? {});
  if (read.success) return read.data;
  throw new Refusal(
    error(400, read.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`).join('; ')),
  );
}

export async function callOf(request: IncomingMessage): Promise<Call> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const bytes = Buffer.concat(chunks);
  const binary = request.headers['content-type'] === PROTOBUF;
  const url = new URL(request.url ?? '/', 'http://localhost');
  return {
    method: request.method ?? 'GET',
    path: url.pathname,
    query: url.searchParams,
    body: binary || bytes.length === 0 ? undefined : (JSON.parse(bytes.toString()) as Json),
    bytes: binary ? bytes : undefined,
    headers: request.headers,
  };
}

export function send(response: ServerResponse, { status, body, headers }: Answer): void {
  response.writeHead(status, { 'content-type': typeOf(body), ...headers }).end(textOf(body));
}

/** Half of the body that the head promises, and then nothing. */
export function sendCut(response: ServerResponse, { status, body }: Answer): void {
  const whole = Buffer.from(textOf(body));
  response.writeHead(status, { 'content-type': typeOf(body), 'content-length': String(whole.length) });
  response.write(whole.subarray(0, Math.floor(whole.length / 2)), () => response.destroy());
}

const typeOf = (body: Answer['body']): string =>
  body instanceof Uint8Array
    ? PROTOBUF
    : typeof body === 'string'
      ? 'text/plain; charset=utf-8'
      : 'application/json';

const textOf = (body: Answer['body']): string | Uint8Array =>
  body === undefined
    ? ''
    : typeof body === 'string' || body instanceof Uint8Array
      ? body
      : JSON.stringify(body);
