import { createHash, randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { EventSourceParserStream, ParseError } from 'eventsource-parser/stream';
import { z } from 'zod';
import { GradusError, messageOf } from '../../../core/errors.ts';
import { canonicalJson } from '../../../core/json/canonical-json.ts';
import type { Json } from '../../../core/json/json.ts';
import type { Split, TaskRef } from '../../../core/refs.ts';
import { defineEnvironment, ToolRefusal } from '../../contract/environment.ts';
import type { Environment, Task, Tool, ToolContext, Verifier } from '../../contract/environment.ts';
import type { ActedFully, Attached, Replay, Reattach, SessionPlace } from '../../contract/session.ts';
import { environmentReward } from '../../verifiers/environment-reward.ts';
import { remembered } from './remembered.ts';
import {
  below,
  LONGEST_RESPONSE,
  LOOKUP_MS,
  readResponse,
  request,
  requestJson,
  sessionLost,
  shown,
  responseText,
  tooLong,
  untilReached,
  wrongAnswer,
} from './server.ts';
import { servedToolOf } from './session-tools.ts';
import type { ToolChoices } from './session-tools.ts';
import { timeoutSignal } from '../../../core/timeout-signal.ts';

// Open Reward Standard, https://openrewardstandard.io: environments behind HTTP, a session by the header X-Session-ID.
// Spoken by PyPI's `ors-sdk` and `openreward`.

/** Some of a server's split: tasks `from` (0 unless given) up to `to` (the last unless given), which is not among them. */
export interface SplitPart {
  of: string;
  from?: number;
  to?: number;
}

export interface OrsChoices extends ToolChoices {
  /** Of the server, such as http://127.0.0.1:8080. */
  url: string;
  /** Of the environment on the server; its first one unless given. */
  environment?: string;
  /** What Gradus calls it; what the server calls it unless given. */
  name?: string;
  /** Which of the server's splits are whose; by their types (train, validation, test) unless given. */
  splits?: Partial<Record<Split, string | SplitPart>>;
  /**
   * `reattach`: the session stays on the server, which any process finds it on, for as long as the server lives. `replay`: where it
   * is gone its calls are made again, for environments that are a function of task and calls.
   */
  resume?: 'reattach' | 'replay';
  /** The server's reward as a score in [0, 1] unless given. */
  verifiers?: readonly Verifier[];
  /** What the server's code and data are, where tools and counts do not tell; part of the environment's version. */
  version?: string;
  headers?: Record<string, string>;
}

const toolShape = z.object({
  name: z.string(),
  description: z.string(),
  input_schema: z.record(z.string(), z.json()).nullable(),
});
const toolsShape = z.object({ tools: z.array(toolShape) });
const splitsShape = z.array(z.object({ name: z.string(), type: z.enum(['train', 'validation', 'test']) }));
const blocksShape = z.array(
  z.discriminatedUnion('type', [
    z.object({ type: z.literal('text'), text: z.string() }),
    z.object({ type: z.literal('image'), mimeType: z.string(), data: z.string() }),
  ]),
);
const outcomeShape = z.discriminatedUnion('ok', [
  z.object({
    ok: z.literal(true),
    output: z.object({
      blocks: blocksShape,
      reward: z.number().nullish(),
      finished: z.boolean().optional(),
    }),
  }),
  z.object({ ok: z.literal(false), error: z.string() }),
]);

type Listed = z.infer<typeof toolsShape>;

/** How many tasks with their prompts a process remembers. */
const MOST_TASKS = 512;
/** Servers let go of sessions that nobody has asked for in a quarter of an hour, milliseconds. */
const PING_MS = 60_000;
/** A session that has had no call of ours for so long is of an episode that nobody goes on with, milliseconds. */
const UNUSED_MS = 24 * 60 * 60_000;
/** After so many in a row the server has let go of the session. */
const MOST_FAILED_PINGS = 15;

/**
 * An environment of an ORS server. It asks the server what there is: `export default await ors({ url })`.
 * Throws GradusError('environment', 'server-unreachable' | 'server-error' | 'server-answer' | 'ors').
 */
export async function ors(choices: OrsChoices): Promise<Environment> {
  const { url, headers = {}, resume = 'reattach', verifiers = [environmentReward()] } = choices;
  const signal = timeoutSignal(LOOKUP_MS);
  const asked = <T>(ask: () => Promise<T>): Promise<T> => untilReached(signal, 5, ask);
  const names = await asked(() =>
    requestJson(below(url, 'list_environments'), z.array(z.string()).min(1), {
      method: 'GET',
      headers,
      signal,
    }),
  );
  const served = (choices.environment ?? names[0]!).toLowerCase();
  if (!names.includes(served)) throw wrong(`${url} has no environment ${served}: it has ${names.join(', ')}`);
  const server = new OrsServer(url, served, headers);
  const listed = await asked(() => server.tools(signal));
  const parts = await asked(() => partsOf(server, choices.splits, signal));
  const sessions: Reattach | Replay = resume === 'reattach' ? reattaching(server) : replaying(server);
  const taskOf = remembered(MOST_TASKS, keyOf, (ref: TaskRef) => server.task(ref, choices, listed, parts));
  return defineEnvironment({
    name: choices.name ?? served,
    version: versionOf([choices.version ?? '', served, listed, parts]),
    levels: [1],
    tools: toolsOf(listed, choices),
    verifiers,
    sessions,
    taskCount: (split) => parts[split].to - parts[split].from,
    task: taskOf,
  });
}

/** Where a split of ours begins and ends in one of the server's. */
type Parts = Record<Split, Required<SplitPart>>;

async function partsOf(server: OrsServer, wanted: OrsChoices['splits'], signal: AbortSignal): Promise<Parts> {
  const served = await server.splits(signal);
  const byType = (type: string): string | undefined => served.find((split) => split.type === type)?.name;
  const part = async (split: Split, type: string): Promise<Required<SplitPart>> => {
    const named = wanted === undefined ? byType(type) : wanted[split];
    if (named === undefined) return { of: '', from: 0, to: 0 };
    const { of, from = 0, to = Infinity } = typeof named === 'string' ? { of: named } : named;
    if (!served.some(({ name }) => name === of)) {
      throw wrong(`${server.url} has no split ${of}: it has ${served.map(({ name }) => name).join(', ')}`);
    }
    const end = Math.min(to, await server.count(of, signal));
    return { of, from: Math.min(from, end), to: end };
  };
  const parts: Parts = {
    train: await part('train', 'train'),
    heldout: await part('heldout', 'validation'),
    test: await part('test', 'test'),
  };
  const all = Object.entries(parts);
  for (const [i, [one, a]] of all.entries()) {
    const twin = all.slice(i + 1).find(([, b]) => a.of === b.of && a.from < b.to && b.from < a.to);
    if (twin)
      throw wrong(`${one} and ${twin[0]} have tasks of ${a.of} in common: say \`splits\` that have none`);
  }
  if (parts.train.to === parts.train.from) {
    throw wrong(`${server.url} has no tasks to train on: say which of its splits is what in \`splits\``);
  }
  return parts;
}

/** What is asked of one environment of a server. */
class OrsServer {
  readonly url: string;
  private readonly environment: string;
  private readonly headers: Record<string, string>;
  /** Sessions that are kept from being let go of, here. */
  private readonly pinged = new Map<string, { timer: NodeJS.Timeout; usedAt: number }>();

  constructor(url: string, environment: string, headers: Record<string, string>) {
    this.url = url;
    this.environment = environment;
    this.headers = headers;
  }

  tools(signal: AbortSignal): Promise<Listed> {
    return requestJson(this.at('tools'), toolsShape, { method: 'GET', headers: this.headers, signal });
  }

  splits(signal: AbortSignal): Promise<z.infer<typeof splitsShape>> {
    return requestJson(this.at('splits'), splitsShape, { method: 'GET', headers: this.headers, signal });
  }

  async count(split: string, signal: AbortSignal): Promise<number> {
    const shape = z.object({ num_tasks: z.int().min(0) });
    const { num_tasks } = await requestJson(this.at('num_tasks'), shape, {
      body: { split },
      headers: this.headers,
      signal,
    });
    return num_tasks;
  }

  /** The prompt is a session's, so there is one for as long as it takes to ask. */
  async task(ref: TaskRef, choices: OrsChoices, shared: Listed, parts: Parts): Promise<Task> {
    const signal = timeoutSignal(LOOKUP_MS);
    const { of, from, to } = parts[ref.split];
    const index = from + ref.index;
    if (index >= to)
      throw wrong(`${this.url} has ${to - from} tasks of split ${ref.split}: there is no task ${ref.index}`);
    const sid = `gradus-prompt-${randomUUID()}`;
    await this.create(sid, { split: of, index }, signal);
    try {
      const asked = { method: 'GET', headers: { ...this.headers, 'X-Session-ID': sid }, signal } as const;
      const blocks = await requestJson(this.at('prompt'), blocksShape, asked);
      const listed = await requestJson(this.at('task_tools'), toolsShape, asked);
      const own = canonicalJson(listed) !== canonicalJson(shared);
      return {
        ref,
        prompt: textOfBlocks(blocks),
        info: { split: of, index },
        ...(own && { tools: toolsOf(listed, choices) }),
      };
    } finally {
      await this.delete(sid, signal);
    }
  }

  async create(sid: string, task: Json, signal: AbortSignal): Promise<void> {
    await requestJson(below(this.url, 'create'), z.object({ sid: z.string() }), {
      body: { env_name: this.environment, ...(task as object) },
      headers: { ...this.headers, 'X-Session-ID': sid },
      signal,
    });
    // The set-up goes on in the background; its failure is told by whatever is asked next.
    this.keepAlive(sid);
  }

  async delete(sid: string, signal: AbortSignal): Promise<void> {
    clearInterval(this.pinged.get(sid)?.timer);
    this.pinged.delete(sid);
    await requestJson(below(this.url, 'delete'), z.object({ sid: z.string() }), {
      headers: { ...this.headers, 'X-Session-ID': sid },
      signal,
    });
  }

  /** Whether the server still has the session. */
  async ping(sid: string, signal: AbortSignal): Promise<boolean> {
    const at = below(this.url, 'ping');
    const response = await request(at, { headers: { ...this.headers, 'X-Session-ID': sid }, signal });
    const text = await responseText(at, response, signal);
    if (response.status === 404) return false;
    if (!response.ok) throw wrongAnswer(at, `${response.status}: ${shown(text)}`);
    return true;
  }

  /**
   * A call, whose answer comes as a stream of events. Where it breaks off, the same call is asked for again by the id that
   * the server gave it: it is not made again.
   */
  async call(
    sid: string,
    name: string,
    input: Json,
    { signal, ...context }: ToolContext,
  ): Promise<ActedFully> {
    let id: string | undefined;
    for (let attempt = 1; ; attempt++) {
      let answer: string | undefined;
      let breach: unknown;
      const at = this.at('call');
      const response = await request(at, {
        body: { name, input, ...(id !== undefined && { task_id: id }) },
        headers: { ...this.headers, 'X-Session-ID': sid, accept: 'text/event-stream' },
        signal,
      });
      if (!response.ok) {
        const text = shown(await responseText(at, response, signal));
        if (response.status === 404 || response.status === 410)
          throw sessionLost(`${at} knows no session ${sid}: ${text}`);
        throw wrongAnswer(at, `${response.status}: ${text}`);
      }
      try {
        const parts: string[] = [];
        let length = 0;
        for await (const { event, data } of eventsOf(response, () => context.heartbeat())) {
          context.heartbeat();
          length += data.length;
          if (length > LONGEST_RESPONSE) throw tooLong(at);
          if (event === 'task_id') id = data.trim();
          else if (event === 'chunk') parts.push(data);
          else if (event === 'end') answer = [...parts, data].join('');
          else if (event === 'error') throw failedThere(at, name, data, id !== undefined && attempt > 1);
          if (answer !== undefined) break;
        }
      } catch (error) {
        signal.throwIfAborted();
        if (error instanceof GradusError) throw error;
        if (error instanceof ParseError && error.type === 'max-buffer-size-exceeded') throw tooLong(at);
        breach = error;
      }
      if (answer !== undefined) return readOutcome(at, answer);
      if (id === undefined || attempt >= 5) {
        throw wrongAnswer(
          at,
          `with a stream that breaks off (${breach === undefined ? 'no end' : messageOf(breach)})`,
        );
      }
      await pause(100 * 2 ** attempt, undefined, { signal });
    }
  }

  /**
   * Until it is deleted here, or the server no longer has it, or has let go of it, for all that it has answered; and for a
   * day from the last time that this is called.
   */
  keepAlive(sid: string): void {
    const known = this.pinged.get(sid);
    if (known) return void (known.usedAt = Date.now());
    let failed = 0;
    const stop = (): void => {
      clearInterval(pinged.timer);
      if (this.pinged.get(sid) === pinged) this.pinged.delete(sid);
    };
    const beat = async (): Promise<void> => {
      if (Date.now() - pinged.usedAt > UNUSED_MS) return stop();
      try {
        const there = await this.ping(sid, timeoutSignal(PING_MS));
        failed = 0;
        if (!there) stop();
      } catch (error) {
        console.warn(`ping of session ${sid}: ${messageOf(error)}`);
        if (++failed >= MOST_FAILED_PINGS) stop();
      }
    };
    const pinged = { timer: setInterval(() => void beat(), PING_MS), usedAt: Date.now() };
    pinged.timer.unref();
    this.pinged.set(sid, pinged);
  }

  /** Ends the sessions that this process has of an episode. Those of processes that are gone the server lets go of. */
  async deleteOf(place: SessionPlace): Promise<void> {
    const known = [...this.pinged.keys()].filter((sid) => sid.startsWith(`${sidOf(place)}-`));
    await Promise.all(known.map((sid) => this.delete(sid, place.signal)));
  }

  private at(path: string): string {
    return below(this.url, `${encodeURIComponent(this.environment)}/${path}`);
  }
}

function reattaching(server: OrsServer): Reattach {
  const attached = (sid: string): Attached => ({
    handle: sid,
    act: (call, context) => {
      server.keepAlive(sid);
      return server.call(sid, call.name, call.arguments, context);
    },
  });
  return {
    resume: 'reattach',
    async open(task, place) {
      await server.deleteOf(place);
      const sid = `${sidOf(place)}-${place.opening}`;
      await server.create(sid, task.info!, place.signal);
      return attached(sid);
    },
    async attach(_task, place, handle) {
      const sid = handle as string;
      if (await server.ping(sid, place.signal)) {
        server.keepAlive(sid);
        return attached(sid);
      }
      throw new GradusError(
        'environment',
        'session-lost',
        `${server.url} no longer has the session ${sid}: a server that was started anew has none of its sessions`,
      );
    },
    async close(_task, place, handle) {
      await (handle === null ? server.deleteOf(place) : server.delete(handle as string, place.signal));
    },
  };
}

function replaying(server: OrsServer): Replay {
  return {
    resume: 'replay',
    async open(task, place) {
      // Another process may still have a session of this episode, which is not ours.
      const sid = `${sidOf(place)}-${randomUUID()}`;
      await server.create(sid, task.info!, place.signal);
      return {
        act: (call, context) => server.call(sid, call.name, call.arguments, context),
        close: () => server.delete(sid, timeoutSignal(LOOKUP_MS)),
      };
    },
  };
}

/** A header may be cut or mangled on the way where it is long: ids of episodes are paths. */
const sidOf = ({ id }: SessionPlace): string =>
  `gradus-${createHash('sha256').update(id).digest('hex').slice(0, 40)}`;

async function* eventsOf(
  response: Response,
  sign: () => void,
): AsyncGenerator<{ event?: string | undefined; data: string }> {
  if (response.body === null) return;
  yield* response.body
    .pipeThrough(new TextDecoderStream())
    .pipeThrough(new EventSourceParserStream({ onComment: sign, maxBufferSize: LONGEST_RESPONSE }));
}

/** The environment's own code threw, or, asked for again, the server no longer knows of the call. */
function failedThere(at: string, tool: string, why: string, again: boolean): GradusError {
  if (again && why === 'unknown task_id') return sessionLost(`${at} no longer knows of a call of ${tool}`);
  return new GradusError(
    'environment',
    'server-error',
    `${at}: the tool ${tool} failed there: ${shown(why)}`,
  );
}

/** A call that the environment would not take is the policy's mistake. */
function readOutcome(at: string, text: string): ActedFully {
  const outcome = readResponse(at, outcomeShape, text);
  if (!outcome.ok) throw new ToolRefusal(outcome.error);
  const { blocks, reward, finished = false } = outcome.output;
  const images = blocks.flatMap((block) =>
    block.type === 'image' ? [{ mediaType: block.mimeType, data: block.data }] : [],
  );
  return {
    text: blocks.flatMap((block) => (block.type === 'text' ? block.text : [])).join('\n'),
    ...(images.length > 0 && { images }),
    ...(typeof reward === 'number' && { reward }),
    ...(finished && { done: true }),
  };
}

/** A prompt is text. */
const textOfBlocks = (blocks: z.infer<typeof blocksShape>): string =>
  blocks.map((block) => (block.type === 'text' ? block.text : `[image ${block.mimeType}]`)).join('\n');

const toolsOf = ({ tools }: Listed, choices: OrsChoices): Tool[] =>
  tools.map(({ name, description, input_schema }) =>
    servedToolOf(
      { name, description, arguments: { ...input_schema, type: 'object' } },
      choices.resume === 'replay',
      choices,
    ),
  );

const versionOf = (facts: Json): string =>
  `sha256:${createHash('sha256').update(canonicalJson(facts)).digest('hex')}`;

const keyOf = ({ split, level, index }: TaskRef): string => `${split} ${level} ${index}`;

const wrong = (message: string): GradusError => new GradusError('environment', 'ors', message);
