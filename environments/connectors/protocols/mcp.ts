import { GradusError } from '../../../core/errors.ts';
import type { Json } from '../../../core/json/json.ts';
import { defineTool } from '../../contract/environment.ts';
import type { Task, Tool } from '../../contract/environment.ts';
import type { Pin, Replay } from '../../contract/session.ts';
import { Connection, isNotOfItsSessions, serverName } from './mcp-connection.ts';
import type { Hinted, McpServer } from './mcp-connection.ts';
import { LOOKUP_MS, sessionLost } from './server.ts';
import { makeSessionFolder, removeSessionFolder } from './session-folder.ts';
import { servedToolOf } from './session-tools.ts';
import type { ToolChoices } from './session-tools.ts';
import { timeoutSignal } from '../../../core/timeout-signal.ts';

// Servers of the Model Context Protocol, https://modelcontextprotocol.io, by its own client: as stateless tools that all
// episodes share, or with one instance for each episode.

/** What the server of one session can be made for. */
export interface McpPlace {
  /** The episode's, as in SessionPlace; `tools` where the server is only asked for its tools. */
  id: string;
  /** An empty folder of this session alone, removed when the session is closed: for whatever the server writes. */
  folder: string;
}

/**
 * The server of one session, made each time that it is opened. `task` is null where the server is only asked for its tools.
 */
export type McpServerOf = (task: Task | null, place: McpPlace) => McpServer | Promise<McpServer>;

interface McpChoices extends ToolChoices {
  /** Names of the tools to take; all unless given. */
  only?: readonly string[];
}

export interface StatelessMcpChoices extends McpChoices {
  server: McpServer;
  /**
   * Whether what the server hints of its tools is so: one that only reads is `pure`, an idempotent one `idempotent`. Hints
   * come from whoever wrote the server, so without your word every tool is `once`, unless `effects` says otherwise.
   */
  hintsAreTrue?: boolean;
}

export interface StatefulMcpChoices extends McpChoices {
  /**
   * A server that is the same for all sessions has an instance for each, which separates what it keeps in memory and nothing
   * else: what it keeps in files, a database or elsewhere all sessions share. One that does is given by a function, which
   * points it at the session's folder. Of an address, the server itself decides what its sessions share.
   */
  server: McpServer | McpServerOf;
  /**
   * `replay`: where the instance is gone there is a new one, and the calls are made again. `pin`: the episode is `failed`,
   * for servers that do not do the same twice, or whose calls change the world.
   */
  resume: 'replay' | 'pin';
}

/** How long a server without calls is kept, milliseconds. */
const IDLE_MS = 10_000;

/**
 * A server's tools for any environment. All episodes share one server, which must keep no state between calls; it is started
 * when it is first needed, and again when it is gone.
 * Throws GradusError('infra', 'mcp', retryable) where it cannot be asked for its tools.
 */
export async function mcpTools(choices: StatelessMcpChoices): Promise<Tool[]> {
  const shared = new Shared(choices.server);
  return (await listed(choices.server, choices)).map(({ readOnly, idempotent, ...served }) => {
    const hinted = readOnly ? 'pure' : idempotent ? 'idempotent' : 'once';
    const effect = choices.effects?.[served.name] ?? (choices.hintsAreTrue ? hinted : 'once');
    const tool = servedToolOf(served, false, { ...choices, effects: { [served.name]: effect } });
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
  const tools = await inFolder(async (folder) => {
    const place = { id: 'tools', folder };
    const of = typeof server === 'function' ? await server(null, place) : server;
    return (await listed(of, choices)).map((served) => servedToolOf(served, true, choices));
  });
  const sessions: Replay | Pin = {
    resume,
    async open(task, { id, signal }) {
      const { connection, close } = await begin(server, task, id, signal);
      return {
        async act(call, context) {
          try {
            return await connection.call(call.name, call.arguments, context);
          } catch (error) {
            if (!(error instanceof GradusError) || error.type !== 'mcp') throw error;
            throw sessionLost(error.message);
          }
        },
        close,
      };
    },
  };
  return { tools, sessions };
}

/** An instance for one session, and what ends it. */
async function begin(
  server: McpServer | McpServerOf,
  task: Task,
  id: string,
  signal: AbortSignal,
): Promise<{ connection: Connection; close: () => Promise<void> }> {
  if (typeof server !== 'function') {
    const connection = await Connection.to(server, signal);
    return { connection, close: () => connection.close() };
  }
  const folder = await makeSessionFolder();
  try {
    const connection = await Connection.to(await server(task, { id, folder }), signal);
    const close = async (): Promise<void> => {
      await connection.close();
      await removeSessionFolder(folder);
    };
    return { connection, close };
  } catch (error) {
    await removeSessionFolder(folder);
    throw error;
  }
}

async function inFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = await makeSessionFolder();
  try {
    return await work(folder);
  } finally {
    await removeSessionFolder(folder);
  }
}

async function listed(server: McpServer, { only }: McpChoices): Promise<Hinted[]> {
  const signal = timeoutSignal(LOOKUP_MS);
  const connection = await Connection.to(server, signal);
  try {
    const tools = await connection.tools(signal);
    const missing = only?.find((name) => !tools.some((tool) => tool.name === name));
    if (missing !== undefined) {
      throw new GradusError(
        'infra',
        'mcp',
        `${serverName(server)} has no tool ${missing}: it has ${tools.map(({ name }) => name).join(', ')}`,
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
    const connection = await (this.connection ??= Connection.to(this.server, timeoutSignal(LOOKUP_MS)));
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
