import {
  Client,
  ProtocolError,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client';
import type { CallToolResult, ClientOptions, JsonSchemaValidator } from '@modelcontextprotocol/client';
import { getDefaultEnvironment, StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { GradusError, messageOf } from '../../../core/errors.ts';
import { canonicalJson } from '../../../core/json/canonical-json.ts';
import type { Json } from '../../../core/json/json.ts';
import { isDeeperThan } from '../../../core/json/levels.ts';
import { ToolRefusal } from '../../contract/environment.ts';
import type { Image, JsonSchema, ToolContext } from '../../contract/environment.ts';
import { checkJson } from '../../host/arguments.ts';
import { boundedFetch } from './bounded-fetch.ts';
import { MOST_LEVELS, shown, wrongAnswer } from './server.ts';
import type { ServedTool } from './session-tools.ts';

/** A program that speaks on its standard streams, or an address that speaks streamable HTTP. */
export type McpServer =
  | {
      command: string;
      args?: readonly string[];
      /** Besides what every program needs (PATH, HOME and the like): it sees no other variables. */
      env?: Readonly<Record<string, string>>;
      /** Its working directory; this process's unless given. */
      cwd?: string;
    }
  | { url: string; headers?: Readonly<Record<string, string>> };

/** A tool, and what its server hints of it. */
export type Hinted = ServedTool & { readOnly: boolean; idempotent: boolean };

/** Longest time that timers take, milliseconds: what limits a call is its signal. */
const ENDLESS_MS = 2 ** 31 - 1;
const INVALID_PARAMS = -32602;
/** Longest structured result, characters as JSON: far more than any tool's output that a policy reads. */
const LONGEST_RESULT = 1_000_000;

/** What a tool gives is checked by the server's schema as arguments are, which neither can make endless. */
const BOUNDED: NonNullable<ClientOptions['jsonSchemaValidator']> = {
  getValidator:
    <T>(schema: object): JsonSchemaValidator<T> =>
    (given) => {
      const checked = checkJson(schema as JsonSchema, given, { limited: true });
      return 'value' in checked
        ? { valid: true, data: given as T, errorMessage: undefined }
        : { valid: false, data: undefined, errorMessage: `${checked.at} ${checked.message}`.trim() };
    },
};

/** What went wrong beside calls: what ended the connection, and what the library said last. */
interface Faults {
  ended?: GradusError;
  said?: string;
}

/** One client's connection to a server. */
export class Connection {
  private readonly server: McpServer;
  private readonly client: Client;
  /** What a program said last on its standard error, which says why it ended. */
  private readonly lastWords: () => string;
  /** Whether the program has ended, or the server knows the session no longer. */
  lost = false;
  private readonly faults: Faults;

  private constructor(server: McpServer, client: Client, lastWords: () => string, faults: Faults) {
    this.server = server;
    this.client = client;
    this.lastWords = lastWords;
    this.faults = faults;
    // The client is no event target: this is its one way to tell.
    // eslint-disable-next-line unicorn/prefer-add-event-listener
    client.onclose = () => {
      this.lost = true;
    };
  }

  /** Throws GradusError('infra', 'mcp', retryable), and the signal's reason. */
  static async to(server: McpServer, signal: AbortSignal): Promise<Connection> {
    const client = new Client({ name: 'gradus', version: '1' }, { jsonSchemaValidator: BOUNDED });
    let words = '';
    const faults: Faults = {};
    // As above.
    // eslint-disable-next-line unicorn/prefer-add-event-listener
    client.onerror = (error) => (faults.said = error.message);
    const onTooLong = (error: GradusError): void => {
      faults.ended = error;
      // The library would wait for another answer.
      void client.close();
    };
    try {
      if ('url' in server) {
        const transport = new StreamableHTTPClientTransport(new URL(server.url), {
          requestInit: { headers: { ...server.headers } },
          fetch: boundedFetch(onTooLong),
        });
        await client.connect(transport, { signal });
        return new Connection(server, client, () => words, faults);
      }
      const { command, args = [], env = {}, cwd } = server;
      const transport = new StdioClientTransport({
        command,
        args: [...args],
        env: { ...getDefaultEnvironment(), ...env },
        stderr: 'pipe',
        ...(cwd !== undefined && { cwd }),
      });
      transport.stderr?.on('data', (chunk: Buffer) => {
        words = `${words}${chunk.toString('utf8')}`.slice(-500);
      });
      await client.connect(transport, { signal });
      return new Connection(server, client, () => words, faults);
    } catch (cause) {
      await client.close();
      signal.throwIfAborted();
      if (faults.ended) throw faults.ended;
      throw away(server, `cannot be begun with (${messageOf(cause)})`, words, cause);
    }
  }

  async tools(signal: AbortSignal): Promise<Hinted[]> {
    try {
      const { tools } = await this.client.listTools(undefined, { signal });
      return tools.map(({ name, description = '', inputSchema, annotations }) => ({
        name,
        description,
        arguments: inputSchema as JsonSchema,
        readOnly: annotations?.readOnlyHint === true,
        idempotent: annotations?.idempotentHint === true,
      }));
    } catch (cause) {
      signal.throwIfAborted();
      if (this.faults.ended) throw this.faults.ended;
      if (cause instanceof RangeError)
        throw wrongAnswer(
          serverName(this.server),
          'with tools whose schemas have more levels than can be read',
        );
      throw away(this.server, `does not list its tools (${messageOf(cause)})`, this.lastWords(), cause);
    }
  }

  /**
   * Progress is a sign of life; when the signal is aborted the server is told that the call is cancelled. Throws ToolRefusal
   * for what the tool would not do, GradusError('infra', 'mcp', retryable) where the server is gone,
   * GradusError('environment', 'server-answer'), and the signal's reason.
   */
  async call(
    name: string,
    args: Json,
    { signal, idempotencyKey, ...context }: ToolContext,
  ): Promise<{ text: string; images?: Image[] }> {
    if (this.lost) throw away(this.server, 'has ended', this.lastWords());
    let result: CallToolResult;
    try {
      result = await this.client.callTool(
        {
          name,
          arguments: args as Record<string, unknown>,
          _meta: { 'gradus.dev/idempotency-key': idempotencyKey },
        },
        {
          signal,
          timeout: ENDLESS_MS,
          onprogress: ({ progress, total }) => context.heartbeat({ progress, total: total ?? null }),
        },
      );
    } catch (error) {
      signal.throwIfAborted();
      if (this.faults.ended) throw this.faults.ended;
      if (isAboutArguments(error)) throw new ToolRefusal(error.message);
      // Its result has more levels than its own schema can be checked with, or takes too long to be checked.
      if (error instanceof RangeError)
        throw wrongAnswer(
          serverName(this.server),
          `${name} with a result that cannot be checked: ${error.message}`,
        );
      // It is there, and has answered, but not with a result.
      if (ProtocolError.isInstance(error) || isNoResult(error)) {
        throw wrongAnswer(serverName(this.server), `${name} with an error: ${shown(error.message)}`);
      }
      // Any other status is an answer to this call alone.
      this.lost ||= !SdkHttpError.isInstance(error) || isNotOfItsSessions(error);
      const why = this.lost && this.faults.said !== undefined ? this.faults.said : messageOf(error);
      throw away(this.server, `has not answered ${name} (${why})`, this.lastWords(), error);
    }
    const json = asJson(result.structuredContent ?? null);
    if (json === null || isDeeperThan(MOST_LEVELS, json)) {
      throw wrongAnswer(serverName(this.server), `${name} with a result of more than ${MOST_LEVELS} levels`);
    }
    const { length } = json;
    if (length > LONGEST_RESULT) {
      const message = `${name} with a result of ${length} characters as JSON: it may have ${LONGEST_RESULT}`;
      throw wrongAnswer(serverName(this.server), message);
    }
    const text = textOfResult(result);
    if (result.isError === true) throw new ToolRefusal(text);
    const images = result.content.flatMap((part) =>
      part.type === 'image' ? [{ mediaType: part.mimeType, data: part.data }] : [],
    );
    return { text, ...(images.length > 0 && { images }) };
  }

  async close(): Promise<void> {
    this.lost = true;
    await this.client.close();
  }
}

/** A server that was started anew takes no call of an old session: 404 by the protocol, and 400 of many. Nothing was done. */
export const isNotOfItsSessions = (error: unknown): boolean =>
  SdkHttpError.isInstance(error) && (error.status === 404 || error.status === 400);

/** Today's servers give such mistakes as results; older ones as errors of a code that they use for results of theirs, too. */
const isAboutArguments = (error: unknown): error is ProtocolError =>
  ProtocolError.isInstance(error) &&
  error.code === INVALID_PARAMS &&
  /argument|input validation/iu.test(error.message);

const isNoResult = (error: unknown): error is SdkError =>
  SdkError.isInstance(error) && error.code === SdkErrorCode.InvalidResult;

function textOfResult({ content, structuredContent }: CallToolResult): string {
  const parts = content.flatMap((part) => {
    switch (part.type) {
      case 'text':
        return part.text;
      case 'image':
        return [];
      case 'audio':
        return `[audio ${part.mimeType}]`;
      case 'resource':
        return 'text' in part.resource ? part.resource.text : `[resource ${part.resource.uri}]`;
      case 'resource_link':
        return `[resource ${part.uri}]`;
    }
    return part satisfies never;
  });
  if (content.length === 0 && structuredContent !== undefined)
    return canonicalJson(structuredContent as Json);
  return parts.join('\n');
}

/** null for what has more levels than can be written. */
function asJson(value: unknown): string | null {
  try {
    return JSON.stringify(value);
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}

export const serverName = (server: McpServer): string =>
  'url' in server
    ? `the MCP server ${server.url}`
    : `the MCP server ${[server.command, ...(server.args ?? [])].join(' ')}`;

function away(server: McpServer, how: string, words: string, cause?: unknown): GradusError {
  const text = words.trim() === '' ? '' : `; it said last: ${words.trim()}`;
  return new GradusError('infra', 'mcp', `${serverName(server)} ${how}${text}`, { retryable: true, cause });
}
