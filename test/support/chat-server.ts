import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { once } from 'node:events';
import type { Json } from '../../core/json/json.ts';

export interface ChatBody {
  model: string;
  messages: { role: string; content: string }[];
  temperature: number;
  seed: number;
  max_tokens?: number;
  response_format?: {
    type: string;
    json_schema?: { name: string; strict: boolean; schema: Record<string, Json> };
  };
}

/** What the model "says", or how the server fails. */
export type Reply =
  | { says: string | null; finish?: string; refusal?: string; usage?: { prompt: number; completion: number } }
  | { status: number; body?: string; headers?: Record<string, string> }
  /** 200 with this text as body, chat completion or not. */
  | { raw: string }
  /** The connection is cut off in the middle of the body. */
  | 'disconnect'
  /** Never answers. */
  | 'silence';

export interface Asked {
  body: ChatBody;
  authorization: string | undefined;
  /** When it arrived, by `performance.now()`. */
  at: number;
}

interface Options {
  key?: string;
  /** The types of `response_format` that it knows; it refuses others as servers do. */
  formats?: string[];
}

/**
 * A server of `POST /v1/chat/completions` as OpenAI describes it, with a model that says what the test wants: it checks
 * address, key and fields, and answers with a completion and its usage.
 */
export class ChatServer {
  readonly asked: Asked[] = [];
  private readonly server: Server;

  private constructor(
    options: Options,
    /** What the model says to the request, the nth that was accepted, from 0. */
    reply: (asked: Asked, index: number) => Reply,
  ) {
    this.server = createServer((request, response) => {
      void this.answer(request, response, options, reply);
    });
  }

  static async open(
    reply: (asked: Asked, index: number) => Reply,
    options: Options = {},
  ): Promise<ChatServer> {
    const server = new ChatServer(options, reply);
    server.server.listen(0, '127.0.0.1');
    await once(server.server, 'listening');
    return server;
  }

  get baseUrl(): string {
    const address = this.server.address();
    if (address === null || typeof address === 'string') throw new Error('the server is closed');
    return `http://127.0.0.1:${address.port}/v1`;
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    this.server.close();
    await once(this.server, 'close');
  }

  private async answer(
    request: IncomingMessage,
    response: ServerResponse,
    { key, formats = ['json_schema', 'json_object', 'text'] }: Options,
    reply: (asked: Asked, index: number) => Reply,
  ): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { authorization } = request.headers;
    const refuse = (status: number, message: string): void => send(response, status, { error: { message } });
    if (request.method !== 'POST' || request.url !== '/v1/chat/completions') return refuse(404, 'Not Found');
    if (request.headers['content-type'] !== 'application/json') return refuse(415, 'expected JSON');
    // As some servers do, it repeats the key that it did not like.
    if (key !== undefined && authorization !== `Bearer ${key}`)
      return refuse(401, `Incorrect API key provided: ${authorization}`);
    const body = JSON.parse(Buffer.concat(chunks).toString()) as ChatBody;
    if (typeof body.model !== 'string' || !Array.isArray(body.messages))
      return refuse(400, 'model and messages are required');
    const format = body.response_format?.type;
    if (format !== undefined && !formats.includes(format))
      return refuse(422, `response_format.type: Input should be ${formats.join(' or ')}`);
    const asked = { body, authorization, at: performance.now() };
    this.asked.push(asked);
    const answer = reply(asked, this.asked.length - 1);
    if (answer === 'silence') return;
    if (answer === 'disconnect') {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': 1000 });
      response.write('{"choices":[', () => response.destroy());
      return;
    }
    if ('raw' in answer) return void response.end(answer.raw);
    if ('status' in answer)
      return void response.writeHead(answer.status, answer.headers).end(answer.body ?? '');
    const { says, finish = 'stop', refusal, usage } = answer;
    const message = { role: 'assistant', content: says, ...(refusal === undefined ? {} : { refusal }) };
    send(response, 200, {
      id: 'chatcmpl-1',
      object: 'chat.completion',
      created: 0,
      model: body.model,
      choices: [{ index: 0, message, finish_reason: finish }],
      ...(usage ? { usage: { prompt_tokens: usage.prompt, completion_tokens: usage.completion } } : {}),
    });
  }
}

function send(response: ServerResponse, status: number, body: Json): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}
