import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { WebSocket } from 'ws';
import { z } from 'zod';
import { GradusError } from '../../../core/errors.ts';
import { canonicalJson } from '../../../core/json/canonical-json.ts';
import type { Json } from '../../../core/json/json.ts';
import type { Split, TaskRef } from '../../../core/refs.ts';
import { defineEnvironment, ToolRefusal } from '../../contract/environment.ts';
import type { Environment, JsonSchema, Verifier } from '../../contract/environment.ts';
import type { ActedFully, Pin, Replay, Session, SessionPlace } from '../../contract/session.ts';
import { environmentReward } from '../../verifiers/environment-reward.ts';
import { remembered } from './remembered.ts';
import {
  below,
  LOOKUP_MS,
  readResponse,
  requestJson,
  sessionLost,
  unreachable,
  untilReached,
  wrongAnswer,
} from './server.ts';
import { servedToolOf } from './session-tools.ts';
import type { ServedTool, ToolChoices } from './session-tools.ts';
import { timeoutSignal } from '../../../core/timeout-signal.ts';

// OpenEnv, https://github.com/huggingface/OpenEnv: a WebSocket at /ws is a session, which ends with it; reset, step and
// state go over it. Spoken by the servers of PyPI's `openenv` and `openenv-core`.

export interface OpenEnvTool extends ServedTool {
  /** The action that a call is; its arguments unless given. */
  action?(args: Json): Json;
}

export interface OpenEnvChoices extends ToolChoices {
  /** Of the server, such as http://127.0.0.1:8000. */
  url: string;
  name: string;
  /** How many seeds each split has. Seeds of the splits are different numbers; those of levels, too. */
  seeds: Record<Split, number>;
  /** What `reset` is told besides seed and id, by level; levels 1 to as many as there are. One level unless given. */
  levels?: readonly { [parameter: string]: Json }[];
  /**
   * What can be done. Unless given: one tool, `step`, with the server's schema of an action; or, where an action is a call of
   * an MCP tool, the tools that the environment lists.
   */
  tools?: readonly OpenEnvTool[];
  /** What stands before the first observation in the prompt. */
  instructions?: string;
  /** What the policy reads of an observation; its only text, or all of it as JSON unless given. */
  observe?: (observation: Json) => string;
  /** Whether what an environment's code threw says that the call was wrong, and is the policy's to read. None unless given. */
  refuses?: (message: string) => boolean;
  /**
   * `replay`: where the connection is gone there is another one with the same seed, and the calls are made again. `pin`: the
   * episode is `failed`, for environments that do not do the same twice.
   */
  resume?: 'replay' | 'pin';
  /** The server's reward as a score in [0, 1] unless given. */
  verifiers?: readonly Verifier[];
  /** What the server's code is, where its schema does not tell; part of the environment's version. */
  version?: string;
  headers?: Record<string, string>;
}

const stepShape = z.object({
  observation: z.json(),
  reward: z.union([z.number(), z.boolean()]).nullish(),
  done: z.boolean(),
});
type Step = z.infer<typeof stepShape>;

const answerShape = z.discriminatedUnion('type', [
  z.object({ type: z.literal('observation'), data: stepShape }),
  z.object({ type: z.literal('state'), data: z.record(z.string(), z.json()) }),
  z.object({ type: z.literal('mcp'), data: z.record(z.string(), z.json()) }),
  z.object({ type: z.literal('error'), data: z.object({ message: z.string(), code: z.string() }) }),
]);
type OpenEnvAnswer = Exclude<z.infer<typeof answerShape>, { type: 'error' }>;

const schemaShape = z.object({ action: z.record(z.string(), z.json()) });
const mcpToolsShape = z.object({
  result: z.object({
    tools: z.array(
      z.object({
        name: z.string(),
        description: z.string().nullish(),
        inputSchema: z.record(z.string(), z.json()).optional(),
        input_schema: z.record(z.string(), z.json()).optional(),
      }),
    ),
  }),
});

/** The observation of a call of an MCP tool. */
const calledShape = z.object({
  tool_name: z.string(),
  result: z
    .object({
      content: z.array(
        z.object({
          type: z.string(),
          text: z.string().optional(),
          mimeType: z.string().optional(),
          data: z.string().optional(),
        }),
      ),
      is_error: z.boolean().nullish(),
    })
    .nullish(),
  error: z.object({ error_type: z.string(), message: z.string() }).nullish(),
});
/** Mistakes of an MCP tool's server, and not of whoever calls it. */
const NOT_OURS = ['transport_error', 'timeout'];

const MOST_TASKS = 512;
/** Seeds that one level of one split can have: the next begins there. */
const SEEDS = 10_000_000;
const SPLITS: readonly Split[] = ['train', 'heldout', 'test'];

/**
 * An environment of an OpenEnv server; its tasks are seeds. It asks the server what can be done:
 * `export default await openEnv({ … })`.
 * Throws GradusError('environment', 'server-unreachable' | 'server-error' | 'server-answer').
 */
export async function openEnv(choices: OpenEnvChoices): Promise<Environment> {
  const { url, name, seeds, headers = {}, levels = [{}], resume = 'replay' } = choices;
  const signal = timeoutSignal(LOOKUP_MS);
  const { action } = await untilReached(signal, 5, () =>
    requestJson(below(url, 'schema'), schemaShape, { method: 'GET', headers, signal }),
  );
  const tools = choices.tools ?? (await toolsServed(choices, action, signal));
  const observe = choices.observe ?? plainly;
  const resetOf = ({ split, level, index }: TaskRef): Json => ({
    ...levels[level - 1],
    seed: (SPLITS.indexOf(split) * levels.length + level - 1) * SEEDS + index,
  });
  const open = async (reset: Json, place: SessionPlace): Promise<{ connection: Connection; first: Step }> => {
    const connection = await Connection.to(url, headers, place.signal);
    try {
      const data = { ...(reset as object), episode_id: place.id };
      const first = await connection.ask('observation', { type: 'reset', data }, place.signal);
      return { connection, first: first.data };
    } catch (error) {
      connection.close();
      throw error;
    }
  };
  const session = async (task: { prompt: string; info?: Json }, place: SessionPlace): Promise<Session> => {
    const { connection, first } = await open(task.info!, place);
    const prompt = promptOf(choices, observe(first.observation));
    if (prompt !== task.prompt) {
      connection.close();
      throw new GradusError(
        'environment',
        'replay-differs',
        `${url} began ${JSON.stringify(task.info)} with ${JSON.stringify(prompt.slice(0, 300))}, and with ` +
          `${JSON.stringify(task.prompt.slice(0, 300))} before: its reset() must be a function of the seed`,
      );
    }
    return {
      async act(call, { signal: calledOff }) {
        const tool = tools.find((one) => one.name === call.name)!;
        const data = tool.action ? tool.action(call.arguments) : call.arguments;
        return acted(
          await connection.ask('observation', { type: 'step', data }, calledOff, choices.refuses),
          observe,
        );
      },
      async end(_, calledOff) {
        return { info: (await connection.ask('state', { type: 'state' }, calledOff)).data };
      },
      close: () => connection.close(),
    };
  };
  const sessions: Replay | Pin = { resume, open: session };
  return defineEnvironment({
    name,
    version: versionOf([choices.version ?? '', action, levels as Json, tools.map(({ name }) => name)]),
    levels: levels.map((_, i) => i + 1),
    tools: tools.map((tool) => servedToolOf(tool, true, choices)),
    verifiers: choices.verifiers ?? [environmentReward()],
    sessions,
    taskCount: (split) => Math.min(SEEDS, seeds[split]),
    task: remembered(
      MOST_TASKS,
      ({ split, level, index }: TaskRef) => `${split} ${level} ${index}`,
      async (ref) => {
        const info = resetOf(ref);
        const { connection, first } = await open(info, {
          id: 'prompt',
          signal: timeoutSignal(LOOKUP_MS),
        });
        connection.close();
        return { ref, prompt: promptOf(choices, observe(first.observation)), info };
      },
    ),
  });
}

/** One connection, and on it one message after another. */
class Connection {
  private readonly socket: WebSocket;
  private readonly url: string;
  private lost: string | undefined;
  private waiting: { resolve(text: string): void; reject(error: Error): void } | undefined;

  private constructor(url: string, socket: WebSocket) {
    this.url = url;
    this.socket = socket;
    socket.on('message', (data: Buffer, isBinary) => {
      const { waiting } = this;
      this.waiting = undefined;
      // Nobody has asked: what an earlier question brings too late must not be the answer to the next.
      if (!waiting) this.end('it said something unasked');
      else if (isBinary) waiting.reject(wrongAnswer(url, 'with bytes that are no text'));
      else waiting.resolve(data.toString('utf8'));
    });
    socket.on('error', (error) => this.end(error.message));
    socket.on('close', (code) => this.end(`closed, code ${code}`));
  }

  /** Throws GradusError('environment', 'server-unreachable', retryable), and the signal's reason. */
  static async to(url: string, headers: Record<string, string>, signal: AbortSignal): Promise<Connection> {
    const at = below(url, 'ws').replace(/^http/u, 'ws');
    const socket = new WebSocket(at, { headers, maxPayload: 16 * 1024 * 1024, perMessageDeflate: false });
    try {
      await once(socket, 'open', { signal });
    } catch (cause) {
      // What it may still say about being ended is no news.
      socket.on('error', () => undefined);
      socket.terminate();
      signal.throwIfAborted();
      throw unreachable(at, cause);
    }
    return new Connection(at, socket);
  }

  /**
   * Throws ToolRefusal for an action that the server's schema does not have, or that `refuses` says; for any other mistake
   * GradusError('environment', 'session-lost' | 'server-error' | 'server-answer', retryable), and the signal's reason.
   */
  async ask<Type extends OpenEnvAnswer['type']>(
    type: Type,
    message: Json,
    signal: AbortSignal,
    refuses?: (message: string) => boolean,
  ): Promise<Extract<OpenEnvAnswer, { type: Type }>> {
    signal.throwIfAborted();
    if (this.lost !== undefined) throw sessionLost(`the connection to ${this.url} is gone: ${this.lost}`);
    const text = await new Promise<string>((resolve, reject) => {
      const calledOff = (): void => {
        // Its answer would come some time: nothing else can be asked on this connection.
        this.waiting = undefined;
        this.end('called off');
        reject(signal.reason as Error);
      };
      signal.addEventListener('abort', calledOff, { once: true });
      const done = (): void => signal.removeEventListener('abort', calledOff);
      this.waiting = {
        resolve: (text) => (done(), resolve(text)),
        reject: (error) => (done(), reject(error)),
      };
      this.socket.send(JSON.stringify(message), (error) => error && this.end(error.message));
    });
    const said = readResponse(this.url, answerShape, text);
    if (said.type === 'error') {
      const { code, message: why } = said.data;
      if (code === 'VALIDATION_ERROR' || refuses?.(why)) throw new ToolRefusal(why);
      throw new GradusError('environment', 'server-error', `${this.url}: ${code}: ${why}`, {
        retryable: true,
      });
    }
    if (said.type !== type) throw wrongAnswer(this.url, `${said.type} where ${type} was asked for`);
    return said as Extract<OpenEnvAnswer, { type: Type }>;
  }

  /** The server ends the session when the connection ends. */
  close(): void {
    this.end('closed here');
  }

  private end(why: string): void {
    this.lost ??= why;
    this.socket.terminate();
    const { waiting } = this;
    this.waiting = undefined;
    waiting?.reject(sessionLost(`the connection to ${this.url} is gone: ${this.lost}`));
  }
}

function acted({ data }: { data: Step }, observe: (observation: Json) => string): ActedFully {
  const { observation, reward, done } = data;
  const { result, error } = calledShape.safeParse(observation).data ?? {};
  if (error && NOT_OURS.includes(error.error_type)) {
    throw new GradusError('environment', 'server-error', `${error.error_type}: ${error.message}`, {
      retryable: true,
    });
  }
  const images = (result?.content ?? []).flatMap(({ type, mimeType, data: bytes }) =>
    type === 'image' && mimeType !== undefined && bytes !== undefined
      ? [{ mediaType: mimeType, data: bytes }]
      : [],
  );
  return {
    text: error?.message ?? observe(observation),
    ...(images.length > 0 && { images }),
    ...((error ?? result?.is_error === true) && { refused: true }),
    ...(reward !== null && reward !== undefined && { reward: Number(reward) }),
    ...(done && { done }),
  };
}

/** Actions of environments that serve MCP tools are calls of them; those of all others have a schema of their own. */
async function toolsServed(
  { url, headers = {}, name }: OpenEnvChoices,
  action: Record<string, Json>,
  signal: AbortSignal,
): Promise<readonly OpenEnvTool[]> {
  const properties = (action['properties'] ?? {}) as Record<string, Json>;
  if (properties['tool_name'] === undefined) {
    // Of every action, and for the server alone.
    const { metadata: _, ...own } = properties;
    return [
      {
        name: 'step',
        description: typeof action['description'] === 'string' ? action['description'] : `Acts in ${name}.`,
        arguments: { ...action, type: 'object', properties: own },
      },
    ];
  }
  const connection = await Connection.to(url, headers, signal);
  try {
    await connection.ask('observation', { type: 'reset', data: {} }, signal);
    const request = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} };
    const { data } = await connection.ask('mcp', { type: 'mcp', data: request }, signal);
    const { result } = readResponse(url, mcpToolsShape, JSON.stringify(data));
    return result.tools.map((tool) => ({
      name: tool.name,
      description: tool.description ?? '',
      arguments: { ...(tool.inputSchema ?? tool.input_schema), type: 'object' } as JsonSchema,
      action: (args) => ({ type: 'call_tool', tool_name: tool.name, arguments: args }),
    }));
  } finally {
    connection.close();
  }
}

const promptOf = ({ instructions }: OpenEnvChoices, first: string): string =>
  instructions === undefined ? first : `${instructions}\n\n${first}`;

/** An observation that is one text is that; any other is JSON, in one order. Some versions add `metadata` to each. */
function plainly(observation: Json): string {
  if (typeof observation !== 'object' || observation === null || Array.isArray(observation)) {
    return typeof observation === 'string' ? observation : canonicalJson(observation);
  }
  const called = calledShape.safeParse(observation).data?.result;
  if (called) {
    const parts = called.content.flatMap(({ type, text, data }) =>
      type === 'image' && data !== undefined ? [] : (text ?? `[${type}]`),
    );
    return parts.join('\n');
  }
  const { metadata = {}, ...rest } = observation;
  const said = Object.keys(metadata ?? {}).length === 0 ? rest : observation;
  const values = Object.values(said);
  return values.length === 1 && typeof values[0] === 'string' ? values[0] : canonicalJson(said);
}

const versionOf = (facts: Json): string =>
  `sha256:${createHash('sha256').update(canonicalJson(facts)).digest('hex')}`;
