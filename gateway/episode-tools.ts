import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { callKey } from '../core/episode/acts.ts';
import type { AgentCall, EpisodeSession, EpisodeStatus, ToolCall } from '../core/episode/episode.ts';
import { GradusError, messageOf } from '../core/errors.ts';
import { canonicalJson } from '../core/json/canonical-json.ts';
import type { Json } from '../core/json/json.ts';
import type { ToolDescription } from '../engine/dialect/contract.ts';
import { jsonCodec } from '../store/codec.ts';
import type { Codec } from '../store/codec.ts';
import { sha256Hex } from '../store/digest.ts';
import type { ObjectStore } from '../store/objects/object-store.ts';
import { Problem } from './problem.ts';

/** Of a call's name and its arguments as JSON: each is kept with its episode. */
const MOST_CALL_BYTES = 2 ** 20;
/** Of all calls of an episode together, which is one object with others. */
const MOST_BYTES = 16 * MOST_CALL_BYTES;

/** A call that was made, as it is stored before it is answered. */
export interface MadeCall extends AgentCall {
  /** Its number in the episode, from 1, in the order in which calls were begun. */
  nth: number;
  /** What is now kept of the session that had it. */
  session?: EpisodeSession;
}

/** The tools of an environment, as an agent may call them in one episode. */
export interface OfferedTools {
  described: readonly ToolDescription[];
  /** The episode's name in the keys of its calls. */
  episode: string;
  /** A session has the calls: they are made one after the other, and none can be taken back. */
  inSession: boolean;
  /** Calls that the episode may have. */
  mostCalls: number;
  /** Whether a tool must be called once only. */
  isOnce(tool: string): boolean;
  /**
   * All attempts at a call that its tool has. `before`: what was made before it, in order. Throws what breaks the call, and
   * the signal's reason. What it gives stores what the call brought; what that throws breaks no call.
   */
  make(
    call: ToolCall,
    at: { nth: number; key: string; before: readonly MadeCall[] },
    signal: AbortSignal,
  ): Promise<() => Promise<Pick<MadeCall, 'observation' | 'session'>>>;
}

/** How a call was sent. */
export interface SentCall {
  idempotencyKey?: string | undefined;
  /** Aborted when the client goes before it has been told. */
  gone: AbortSignal;
}

interface BegunCall {
  nth: number;
  call: ToolCall;
  /** Who began it: another process may have the same episode while its loss is not yet known; absent in older versions. */
  by?: string;
}

const call = z.looseObject({ name: z.string(), arguments: z.json() });
const begunCalls = jsonCodec<BegunCall>('a call of an agent', z.looseObject({ nth: z.int(), call }));
/** Which call has a number. */
const numbers = jsonCodec<{ id: string }>(
  'the number of a call of an agent',
  z.looseObject({ id: z.string() }),
);
const madeCalls = jsonCodec<MadeCall>(
  'what a call of an agent brought',
  z.looseObject({ nth: z.int(), call, observation: z.looseObject({ text: z.string() }) }),
);

type Broken = Pick<Extract<EpisodeStatus, { kind: 'failed' }>, 'boundary' | 'reason'>;

export interface EpisodeToolsOptions {
  store: Pick<ObjectStore, 'find' | 'putIfAbsent' | 'listFolder'>;
  /** Where calls are put, without a `/` at its end. */
  folder: string;
  /** The agent begins from the start, and its calls are counted from the first. */
  startsOver: boolean;
  /** Told of what no agent can help: the store is away. */
  onFailure?: ((error: unknown) => void) | undefined;
  /** Told when a call has broken, and the episode with it. */
  onBroken: () => void;
}

/**
 * The calls that an agent makes of its environment's tools in one episode. A call is stored when it is begun and when it is
 * made, under an id that follows from what it calls and how many equal calls came before. So one that is sent again, by an
 * agent that was started over or a client that lost its connection, gets what it brought and is not made again.
 */
export class EpisodeTools {
  readonly offered: OfferedTools;
  /** Why no call is made any more, and the episode has failed. */
  broken: Broken | undefined;
  private readonly options: EpisodeToolsOptions;
  private readonly begun = new Map<string, BegunCall>();
  /** The highest number that a call has. */
  private lastNth = 0;
  /** Numbers of earlier attempts, by the ids of the calls that have them. */
  private readonly numberOf = new Map<string, number>();
  private readonly made = new Map<string, MadeCall>();
  /** Begun by this process, which knows what became of them. */
  private readonly own = new Set<string>();
  private readonly by = randomUUID();
  /** Of the calls that this attempt has asked for. */
  private bytes = 0;
  /** What was first asked for under an Idempotency-Key, by its id. */
  private readonly keyed = new Map<string, string>();
  /** Of an earlier attempt, and not asked for in this one. */
  private readonly unasked = new Set<string>();
  /** Equal calls so far, by their digest. */
  private readonly counts = new Map<string, number>();
  /** Ids of calls whose connection was lost before they were told, by their digest. */
  private readonly lost = new Map<string, string[]>();
  private readonly running = new Map<string, Promise<MadeCall>>();
  private readonly stop = new AbortController();
  /** The last call that the session has, or had. */
  private last: Promise<unknown> = Promise.resolve();

  private constructor(offered: OfferedTools, options: EpisodeToolsOptions) {
    this.offered = offered;
    this.options = options;
  }

  static async open(offered: OfferedTools, options: EpisodeToolsOptions): Promise<EpisodeTools> {
    const tools = new EpisodeTools(offered, options);
    await tools.recall();
    return tools;
  }

  /** All calls that were made, in the order in which they were begun. */
  get calls(): MadeCall[] {
    return [...this.made.values()].toSorted((a, b) => a.nth - b.nth);
  }

  /** Calls that were begun, and of which nobody knows what they did. */
  get unfinished(): ToolCall[] {
    return [...this.begun].flatMap(([id, { call }]) => (this.made.has(id) ? [] : [call]));
  }

  /** Calls of an earlier attempt that this one has not asked for, and that a session cannot take back. */
  get notRepeated(): ToolCall[] {
    if (!this.offered.inSession) return [];
    return [...this.unasked].map((id) => this.begun.get(id)!.call);
  }

  /** What a call brings. Throws Problem for one that is not made, and what the store throws. */
  async take(call: ToolCall, { idempotencyKey, gone }: SentCall): Promise<MadeCall> {
    const bytes = bytesOf(call);
    if (bytes > MOST_CALL_BYTES)
      throw new Problem(
        413,
        'arguments_too_large',
        `The name and the arguments of a call may have ${MOST_CALL_BYTES} bytes, and these have ${bytes}`,
      );
    const digest = digestOf([call.name, call.arguments]);
    const id = idempotencyKey === undefined ? this.nextId(digest) : this.idOfKey(idempotencyKey, digest);
    // Who has a key asks by it again.
    if (idempotencyKey === undefined) {
      const lose = (): void => void this.lost.set(digest, [...(this.lost.get(digest) ?? []), id]);
      if (gone.aborted) lose();
      else gone.addEventListener('abort', lose, { once: true });
    }
    if (this.unasked.delete(id)) this.bytes += bytes;
    const known = this.made.get(id) ?? this.running.get(id);
    if (known) return known;
    const make = (): Promise<MadeCall> => this.makeOnce(id, call);
    const running = (this.offered.inSession ? this.last.then(make) : make()).finally(() =>
      this.running.delete(id),
    );
    this.running.set(id, running);
    this.last = running.catch(() => undefined);
    return running;
  }

  /** No more calls: what is being made is called off. */
  async close(): Promise<void> {
    this.stop.abort(new Problem(409, 'episode_ended', 'No more calls are made in this episode: it is over'));
    await Promise.allSettled(this.running.values());
  }

  /** Of the next call that is equal to others. */
  private nextId(digest: string): string {
    const [first, ...others] = this.lost.get(digest) ?? [];
    if (first !== undefined) {
      this.lost.set(digest, others);
      return first;
    }
    const ordinal = this.counts.get(digest) ?? 0;
    this.counts.set(digest, ordinal + 1);
    return digestOf([digest, ordinal]);
  }

  private idOfKey(idempotencyKey: string, digest: string): string {
    const id = digestOf(['key', idempotencyKey]);
    const { call } = this.begun.get(id) ?? {};
    // One of a session may wait for others, and is not begun.
    const first = call ? digestOf([call.name, call.arguments]) : (this.keyed.get(id) ?? digest);
    this.keyed.set(id, first);
    if (first === digest) return id;
    throw keyReused();
  }

  private async recall(): Promise<void> {
    const { store, folder, startsOver } = this.options;
    const read = async <T>(of: string, codec: Codec<T>, known: Map<string, T>): Promise<void> => {
      const { keys } = await store.listFolder(`${folder}/${of}/`);
      await Promise.all(
        keys.map(async (key) => {
          const one = await store.find(key, codec);
          if (one) known.set(key.slice(key.lastIndexOf('/') + 1, -'.json'.length), one);
        }),
      );
    };
    const claimed = new Map<string, { id: string }>();
    await Promise.all([
      read('begun-calls', begunCalls, this.begun),
      read('calls', madeCalls, this.made),
      read('call-numbers', numbers, claimed),
    ]);
    for (const [nth, { id }] of claimed) {
      this.lastNth = Math.max(this.lastNth, Number(nth));
      this.numberOf.set(id, Math.min(this.numberOf.get(id) ?? Infinity, Number(nth)));
    }
    for (const [id, { nth, call }] of this.begun) {
      this.lastNth = Math.max(this.lastNth, nth);
      const digest = digestOf([call.name, call.arguments]);
      if (startsOver) this.unasked.add(id);
      else {
        this.bytes += bytesOf(call);
        this.counts.set(digest, (this.counts.get(digest) ?? 0) + 1);
      }
    }
  }

  private async makeOnce(id: string, call: ToolCall): Promise<MadeCall> {
    try {
      this.assertGoesOn();
      const { store, folder } = this.options;
      const { nth, call: first } = this.begun.get(id) ?? (await this.begin(id, call));
      // By an older process of the episode that still lives, say: what that gets is no answer to this.
      if (!isEqual(first, call)) throw keyReused();
      const told = this.own.has(id) ? null : await store.find(`${folder}/calls/${id}.json`, madeCalls);
      if (told) {
        this.made.set(id, told);
        return told;
      }
      if (!this.own.has(id) && this.offered.isOnce(call.name))
        throw this.broke(
          new GradusError(
            'infra',
            'unknown-fate',
            `whether ${call.name} was called nobody can say any more, and it must be called once only`,
          ),
        );
      const key = callKey(this.offered.episode, nth);
      const before = this.calls.filter((one) => one.nth < nth);
      const keep = await this.offered.make(call, { nth, key, before }, this.stop.signal).catch((error) => {
        this.stop.signal.throwIfAborted();
        throw this.broke(error);
      });
      const kept = { nth, call, ...(await keep()) };
      const { value } = await store.putIfAbsent(`${folder}/calls/${id}.json`, madeCalls, kept);
      this.made.set(id, value);
      return value;
    } catch (error) {
      if (error instanceof Problem) throw error;
      this.options.onFailure?.(error);
      throw error;
    }
  }

  private async begin(id: string, call: ToolCall): Promise<BegunCall> {
    const { offered, options } = this;
    if (offered.inSession && this.unasked.size > 0)
      throw this.broke(
        new GradusError(
          'environment',
          'other-calls',
          `started over, it called ${call.name} where it had called something else before, and a session cannot take a call back: let it call the same in the same order`,
        ),
      );
    // Those of an attempt that called otherwise were made, and are none that this one has had.
    if (this.begun.size - this.unasked.size >= offered.mostCalls)
      throw new Problem(
        409,
        'too_many_calls',
        `This episode has had its ${offered.mostCalls} calls of tools: raise agent.environmentTools.maxCalls`,
      );
    const bytes = this.bytes + bytesOf(call);
    if (bytes > MOST_BYTES)
      throw new Problem(
        413,
        'arguments_too_large',
        `The names and arguments of an episode's calls may have ${MOST_BYTES} bytes together, and these have ${bytes}`,
      );
    this.bytes = bytes;
    // Before anything else is awaited: the next call has the next number.
    const nth = this.numberOf.get(id) ?? ++this.lastNth;
    this.begun.set(id, { nth, call, by: this.by });
    const one = { nth: await this.claim(id, nth), call, by: this.by };
    const key = `${options.folder}/begun-calls/${id}.json`;
    const { value } = await options.store.putIfAbsent(key, begunCalls, one);
    if (value.by === this.by) this.own.add(id);
    this.begun.set(id, value);
    return value;
  }

  /**
   * The number that a call has for all processes of the episode. A lost worker's agent may live on and call beside the one
   * that was started over, and tools know a call by its number. A session is each process's own, with numbers of its own.
   */
  private async claim(id: string, from: number): Promise<number> {
    const { offered, options } = this;
    if (offered.inSession) return from;
    for (let nth = from; ; nth = ++this.lastNth) {
      const key = `${options.folder}/call-numbers/${nth}.json`;
      const { value } = await options.store.putIfAbsent(key, numbers, { id });
      if (value.id === id) return nth;
    }
  }

  private assertGoesOn(): void {
    this.stop.signal.throwIfAborted();
    if (this.broken)
      throw new Problem(409, 'episode_failed', `This episode has failed: ${this.broken.reason}`);
    if (this.calls.some(({ observation }) => observation.done === true))
      throw new Problem(
        409,
        'episode_ended',
        'No more calls are made in this episode: the environment has ended it',
      );
  }

  /** Never a zero, whatever the call was: as in an episode of the environment's own. */
  private broke(error: unknown): Problem {
    const said = error instanceof GradusError ? error.boundary : 'tool';
    const boundary = said === 'infra' || said === 'environment' ? said : 'tool';
    this.broken ??= { boundary, reason: messageOf(error) };
    this.options.onBroken();
    return new Problem(409, 'episode_failed', `This episode has failed: ${this.broken.reason}`);
  }
}

const bytesOf = ({ name, arguments: given }: ToolCall): number =>
  Buffer.byteLength(name) + Buffer.byteLength(JSON.stringify(given));

const isEqual = (a: ToolCall, b: ToolCall): boolean =>
  digestOf([a.name, a.arguments]) === digestOf([b.name, b.arguments]);

const keyReused = (): Problem =>
  new Problem(
    400,
    'idempotency_key_reused',
    'The Idempotency-Key was used with another call: give each call one of its own',
  );

const digestOf = (value: Json): string =>
  sha256Hex(new TextEncoder().encode(canonicalJson(value))).slice(0, 32);
