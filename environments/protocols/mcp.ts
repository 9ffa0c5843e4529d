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
import { GradusError, messageOf } from '../../core/errors.ts';
import { canonicalJson } from '../../core/json/canonical-json.ts';
import type { Json } from '../../core/json/json.ts';
import { defineTool, ToolRefusal } from '../contract.ts';
import type { Image, JsonSchema, Tool, ToolContext } from '../contract.ts';
import { checkJson } from '../host/arguments.ts';
import type { Pin, Replay } from '../session.ts';
import { LOOKUP_MS, sessionLost, shown, wrongAnswer } from './server.ts';
import { toolOf } from './session-tools.ts';
import type { ServedTool, ToolChoices } from './session-tools.ts';

// Servers of the Model Context Protocol, https://modelcontextprotocol.io, by its own client: as stateless tools that all
// episodes share, or with one instance for each episode.

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

export interface McpChoices extends ToolChoices {
  server: McpServer;
  /** Names of the tools to take; all unless given. */
  only?: readonly string[];
}

export interface StatelessMcpChoices extends McpChoices {
  /**
   * Whether what the server hints of its tools is so: one that only reads is `pure`, an idempotent one `idempotent`. Hints
   * come from whoever wrote the server, so without your word every tool is `once`, unless `effects` says otherwise.
   */
  hintsAreTrue?: boolean;
}

export interface StatefulMcpChoices extends McpChoices {
  /**
   * `replay`: where the instance is gone there is a new one, and the calls are made again. `pin`: the episode is `failed`,
   * for servers that do not do the same twice, or whose calls change the world.
   */
  resume: 'replay' | 'pin';
}

/** How long a server without calls is kept, milliseconds. */
const IDLE_MS = 10_000;
/** Longest time that timers take, milliseconds: what limits a call is its signal. */
const ENDLESS_MS = 2 ** 31 - 1;
const INVALID_PARAMS = -32602;
/** Longest structured result, characters as JSON: far more than any tool's output that a policy reads. */
const LONGEST_RESULT = 1_000_000;

/**
 * A server's tools for any environment. All episodes share one server, which must keep no state between calls; it is started
 * when it is first needed, and again when it is gone.
 * Throws GradusError('infra', 'mcp', retryable) where it cannot be asked for its tools.
 */
export async function mcpTools(choices: StatelessMcpChoices): Promise<Tool[]> {
  const shared = new Shared(choices.server);
  return (await listed(choices)).map(({ readOnly, idempotent, ...served }) => {
    const hinted = readOnly ? 'pure' : idempotent ? 'idempotent' : 'once';
    const effect = choices.effects?.[served.name] ?? (choices.hintsAreTrue ? hinted : 'once');
    const tool = toolOf(served, false, { ...choices, effects: { [served.name]: effect } });
    return defineTool({
      ...tool,
      cost: { seconds: 0, usd: 0 },
      run: async (args, context) =>
        shared.use(context.signal, (connection) => connection.call(tool.name, args as Json, context)),
    });
  });
}

/**
 * A server's tools, with one instance of the server (or one session on it) for each episode: what `tools` and `sessions` of
 * an environment are to be. Throws GradusError('infra', 'mcp', retryable) where it cannot be asked for its tools.
 */
export async function mcpSessions(
  choices: StatefulMcpChoices,
): Promise<{ tools: Tool[]; sessions: Replay | Pin }> {
  const { server, resume } = choices;
  const tools = (await listed(choices)).map((served) => toolOf(served, true, choices));
  const sessions: Replay | Pin = {
    resume,
    async open(_task, { signal }) {
      const connection = await Connection.to(server, signal);
      return {
        async act(call, context) {
          try {
            return await connection.call(call.name, call.arguments, context);
          } catch (error) {
            if (!(error instanceof GradusError) || error.type !== 'mcp') throw error;
            throw sessionLost(error.message);
          }
        },
        close: () => connection.close(),
      };
    },
  };
  return { tools, sessions };
}

type Hinted = ServedTool & { readOnly: boolean; idempotent: boolean };

async function listed({ server, only }: McpChoices): Promise<Hinted[]> {
  const signal = AbortSignal.timeout(LOOKUP_MS);
  const connection = await Connection.to(server, signal);
  try {
    const tools = await connection.tools(signal);
    const missing = only?.find((name) => !tools.some((tool) => tool.name === name));
    if (missing !== undefined) {
      throw new GradusError(
        'infra',
        'mcp',
        `${nameOf(server)} has no tool ${missing}: it has ${tools.map(({ name }) => name).join(', ')}`,
      );
    }
    return tools.filter(({ name }) => only?.includes(name) ?? true);
  } finally {
    await connection.close();
  }
}

/** One connection for whoever calls in this process. */
class Shared {
  private readonly server: McpServer;
  private connection: Promise<Connection> | undefined;
  private users = 0;
  private idle: NodeJS.Timeout | undefined;

  constructor(server: McpServer) {
    this.server = server;
  }

  async use<T>(signal: AbortSignal, work: (connection: Connection) => Promise<T>): Promise<T> {
    clearTimeout(this.idle);
    this.users++;
    try {
      return await work(await this.connected(signal)).catch(async (error: unknown) => {
        if (!(error instanceof GradusError) || !isNotOfItsSessions(error.cause)) throw error;
        return work(await this.connected(signal));
      });
    } finally {
      this.users--;
      if (this.users === 0) this.idle = setTimeout(() => this.letGo(), IDLE_MS).unref();
    }
  }

  private async connected(signal: AbortSignal): Promise<Connection> {
    const seen = this.connection;
    const known = await seen?.catch(() => undefined);
    if (known !== undefined && !known.lost) return known;
    // Whoever comes first makes the next one, not on its own signal: others wait for the same.
    if (this.connection === seen) this.connection = undefined;
    const connection = await (this.connection ??= Connection.to(this.server, AbortSignal.timeout(LOOKUP_MS)));
    signal.throwIfAborted();
    return connection;
  }

  private letGo(): void {
    const { connection } = this;
    this.connection = undefined;
    void connection?.then(
      (known) => known.close(),
      // Whoever asked for it has been told.
      () => undefined,
    );
  }
}

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

class Connection {
  private readonly server: McpServer;
  private readonly client: Client;
  /** What a program said last on its standard error, which says why it ended. */
  private readonly lastWords: () => string;
  /** Whether the program has ended, or the server knows the session no longer. */
  lost = false;

  private constructor(server: McpServer, client: Client, lastWords: () => string) {
    this.server = server;
    this.client = client;
    this.lastWords = lastWords;
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
    try {
      if ('url' in server) {
        const transport = new StreamableHTTPClientTransport(new URL(server.url), {
          requestInit: { headers: { ...server.headers } },
        });
        await client.connect(transport, { signal });
        return new Connection(server, client, () => words);
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
      return new Connection(server, client, () => words);
    } catch (cause) {
      await client.close();
      signal.throwIfAborted();
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
      if (isAboutArguments(error)) throw new ToolRefusal(error.message);
      // It is there, and has answered, but not with a result.
      if (ProtocolError.isInstance(error) || isNoResult(error)) {
        throw wrongAnswer(nameOf(this.server), `${name} with an error: ${shown(error.message)}`);
      }
      // Any other status is an answer to this call alone.
      this.lost ||= !SdkHttpError.isInstance(error) || isNotOfItsSessions(error);
      throw away(this.server, `has not answered ${name} (${messageOf(error)})`, this.lastWords(), error);
    }
    const { length } = JSON.stringify(result.structuredContent ?? null);
    if (length > LONGEST_RESULT) {
      const message = `${name} with a result of ${length} characters as JSON: it may have ${LONGEST_RESULT}`;
      throw wrongAnswer(nameOf(this.server), message);
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
const isNotOfItsSessions = (error: unknown): boolean =>
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

const nameOf = (server: McpServer): string =>
  'url' in server
    ? `the MCP server ${server.url}`
    : `the MCP server ${[server.command, ...(server.args ?? [])].join(' ')}`;

function away(server: McpServer, how: string, words: string, cause?: unknown): GradusError {
  const said = words.trim() === '' ? '' : `; it said last: ${words.trim()}`;
  return new GradusError('infra', 'mcp', `${nameOf(server)} ${how}${said}`, { retryable: true, cause });
}
