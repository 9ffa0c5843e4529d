import path from 'node:path';
import { GradusError, messageOf } from '../core/errors.ts';
import { canonicalJson } from '../core/json/canonical-json.ts';
import type { Json } from '../core/json/json.ts';
import { randomKey } from '../core/random.ts';
import type { RandomKey } from '../core/random.ts';
import type { SamplingSpec } from '../core/schema/sampling.ts';
import { untilAborted } from '../core/until-aborted.ts';
import type { Dialect, ToolDescription } from '../engine/dialect/contract.ts';
import type { Policy, TurnPolicy } from '../engine/policy.ts';
import { sampleTurn } from '../engine/sample-turn.ts';
import type { Tokenizer } from '../engine/tokenizer/tokenizer.ts';
import { sha256Hex } from '../store/digest.ts';
import type { ObjectStore } from '../store/objects/object-store.ts';
import { answerOf } from './answer-of.ts';
import { resultsInOrder } from './answered-calls.ts';
import type { Ask } from './ask.ts';
import { PolicySessions } from './policy-sessions.ts';
import { EpisodeTools } from './episode-tools.ts';
import type { OfferedTools } from './episode-tools.ts';
import { Problem } from './problem.ts';
import { claims, rewards, turns } from './stored-turn.ts';
import type { KeyClaim, StoredTurn } from './stored-turn.ts';
import { rowOf, TurnTree } from './turn-tree.ts';
import type { Place, Row } from './turn-tree.ts';

export interface AgentEpisodeOptions {
  /** Whoever knows it may sample: choose one that cannot be guessed. Letters, digits, `-` and `_`. */
  id: string;
  /** The name by which agents ask for the policy. */
  model: string;
  policy: Policy;
  /** What samples a turn, by its id, in the place of `policy`; absent: that one samples all of them. */
  turnPolicy?: ((turn: string) => Promise<TurnPolicy>) | undefined;
  tokenizer: Tokenizer;
  /** What the policy speaks with the tools that an agent brings. Throws as `openDialect` does. */
  dialectFor(tools: readonly ToolDescription[]): Dialect;
  /** Longest sequence that the model can hold, tokens. */
  maxPositions: number;
  sampling: SamplingSpec;
  /** Of the episode: each turn draws by a key of its own that follows from it. */
  key: RandomKey;
  store: ObjectStore;
  /** Where turns are put, without a `/` at its end. */
  folder: string;
  /**
   * The agent begins from the start, and its requests are counted from the first: what was sampled for an earlier attempt is
   * found again. False: an agent that goes on, whose turns are read from the store.
   */
  startsOver: boolean;
  /** Whether an episode of more than one path of turns has failed; absent: it has. */
  branches?: 'train' | 'fail' | undefined;
  /** Those of the environment that the agent may call; absent: none. */
  tools?: OfferedTools | undefined;
  /** Told of what no agent can help: the policy or the store is away. */
  onFailure?: (error: unknown) => void;
}

/** What a turn follows: tokens of its branch up to where it begins, 1 in `mask` where they were sampled. */
interface Beginning {
  place: Place;
  dialect: Dialect;
  /** Tokens of what the request adds. */
  observed: number[];
  promptTokens: number[];
  tokens: number[];
  mask: (0 | 1)[];
  /** Tokens that may follow; none where it is 0 or less. */
  room: number;
}

/** A request, and the how many-th of its equals. */
type TurnName = Pick<StoredTurn, 'asked' | 'ordinal'>;

/** How a request was sent. */
export interface Sent {
  /** SHA-256 of its body. */
  body: string;
  idempotencyKey: string | undefined;
  /** The client says that it sends this for another time. */
  isRetry: boolean;
  /** Aborted when the client goes before it has been told. */
  gone: AbortSignal;
  /** Settles when the client has been told, or has gone. */
  over: Promise<void>;
}

/**
 * One episode of an agent that samples through the gateway. A turn is stored before it is answered, under an id that
 * follows from all that led to it, so that a request that is sent again gets the same turn, whatever was killed.
 */
export class AgentEpisode {
  readonly options: AgentEpisodeOptions;
  readonly tree = new TurnTree();
  /** Absent where the agent has none but its own. */
  tools: EpisodeTools | undefined;
  /** Why no more turns are sampled; null while the episode goes on. */
  ended: 'turns' | 'tokens' | 'closed' | null = null;
  private readonly sessions: PolicySessions;
  /** Equal requests so far, by their digest. */
  private readonly counts = new Map<string, number>();
  /** By the id of a turn: requests that wait for it or were told it. At 0 all who asked for it went before they were told. */
  private readonly askers = new Map<string, number>();
  /** Those of requests without a key whose askers had all gone, by the digest of the request. */
  private readonly lost = new Map<string, number[]>();
  private readonly running = new Map<string, Promise<StoredTurn>>();
  /** Turns of earlier attempts, by their ids. They were within the limits, and are refused to nobody who asks again. */
  private readonly had = new Set<string>();
  /** Of the requests that get a turn or a call and have not been told it, when they have. */
  private readonly telling = new Set<Promise<void>>();
  /** The last of the requests that has, or had, its turn's name: they are counted in the order in which they came. */
  private lastNamed: Promise<unknown> = Promise.resolve();
  private readonly stop = new AbortController();

  private constructor(options: AgentEpisodeOptions) {
    this.options = options;
    this.sessions = new PolicySessions(options.policy, options.id);
  }

  static async open(options: AgentEpisodeOptions): Promise<AgentEpisode> {
    if (!/^[A-Za-z0-9_-]{1,128}$/.test(options.id)) {
      throw new GradusError(
        'environment',
        'agent-episode',
        `An episode of an agent cannot be called ${JSON.stringify(options.id)}: use letters, digits, - and _`,
      );
    }
    const episode = new AgentEpisode(options);
    await episode.recall();
    if (options.tools) {
      const { store, folder, startsOver, onFailure } = options;
      const onBroken = (): void => void (episode.ended ??= 'closed');
      episode.tools = await EpisodeTools.open(options.tools, {
        store,
        folder,
        startsOver,
        onFailure,
        onBroken,
      });
    }
    return episode;
  }

  /** The turn that a request gets. Throws Problem for one that cannot be answered. */
  async take(ask: Ask, sent: Sent): Promise<StoredTurn> {
    try {
      return await this.taken(ask, sent);
    } catch (error) {
      if (!(error instanceof Problem)) this.options.onFailure?.(error);
      throw error;
    }
  }

  private async taken(ask: Ask, sent: Sent): Promise<StoredTurn> {
    const { previous } = ask;
    let place = this.placeOf(ask);
    for (let twin = this.earlierTwin(place); twin; twin = this.earlierTwin(place)) {
      await twin.catch(() => undefined);
      place = this.placeOf(ask);
    }
    const asked = digestOf({
      parent: place.parent?.id ?? null,
      messages: place.added,
      tools: ask.tools,
      most: ask.maxTokens ?? null,
      ...(previous !== undefined && { previous }),
    });
    const key = sent.idempotencyKey;
    const named = this.lastNamed.then(() =>
      key === undefined ? { asked, ordinal: this.ordinalFor(asked, sent) } : this.claimOf(key, asked, sent),
    );
    this.lastNamed = named.catch(() => undefined);
    const name = await named;
    this.asks(name, sent);
    return this.turnOf(ask, place, name, sent);
  }

  /** A refusal at a limit waits until this is over, whatever it brings: turns and calls of tools. */
  waitFor(over: Promise<void>): void {
    this.telling.add(over);
    void over.finally(() => this.telling.delete(over));
  }

  /** Tokens that the policy would read before it answers. */
  countTokens(ask: Ask): number {
    const place = this.placeOf(ask);
    const isTooLarge = this.sizeRefusal(ask, place);
    if (isTooLarge) throw isTooLarge;
    const { promptTokens, tokens } = this.beginningOf(ask, place);
    return promptTokens.length + tokens.length;
  }

  /** Turns that were asked for by clients that went before they were told, and not asked for again. */
  get untold(): number {
    return this.untoldIds().length;
  }

  /** What the agent says that its episode was worth. Throws Problem(409) where it has said something else. */
  async reward(reward: number): Promise<void> {
    const { store, folder } = this.options;
    const put = store.putIfAbsent(`${folder}/reward.json`, rewards, { reward });
    const { value } = await put.catch((error: unknown) => {
      this.options.onFailure?.(error);
      throw error;
    });
    if (value.reward !== reward)
      throw new Problem(409, 'reward_given', `The reward of this episode is ${value.reward} already`);
  }

  /** One for each branch. */
  rows(): Row[] {
    return this.branches().map(rowOf);
  }

  /** The turns of each branch, in the order of `rows`, without those that nobody was there to be told. */
  branches(): StoredTurn[][] {
    const untold = new Set(this.untoldIds());
    return this.tree.branches(({ id }) => !untold.has(id));
  }

  /** No more turns: what is being sampled is called off. */
  async close(): Promise<void> {
    this.ended ??= 'closed';
    this.stop.abort(new Problem(409, 'episode_ended', 'The episode has ended'));
    await Promise.allSettled([...this.running.values(), this.lastNamed, this.tools?.close()]);
    this.sessions.close();
  }

  private untoldIds(): string[] {
    return [...this.askers].flatMap(([id, left]) => (left === 0 ? [id] : []));
  }

  /** When all who asked for a turn have gone, whoever asks the same next asks for it; of those with keys, by the key. */
  private asks({ asked, ordinal }: TurnName, { gone, idempotencyKey }: Sent): void {
    const id = idOf(asked, ordinal);
    this.askers.set(id, (this.askers.get(id) ?? 0) + 1);
    const leave = (): void => {
      const left = this.askers.get(id)! - 1;
      this.askers.set(id, left);
      if (left === 0 && idempotencyKey === undefined)
        this.lost.set(asked, [...(this.lost.get(asked) ?? []), ordinal]);
    };
    if (gone.aborted) leave();
    else gone.addEventListener('abort', leave, { once: true });
  }

  private async recall(): Promise<void> {
    const { store, folder, startsOver } = this.options;
    const { keys } = await store.listFolder(`${folder}/turns/`);
    for (const key of keys) this.had.add(path.basename(key, '.json'));
    if (startsOver) return;
    const stored = await Promise.all(keys.map((key) => store.find(key, turns)));
    for (const turn of stored) {
      if (!turn) continue;
      this.tree.add(turn);
      this.counts.set(turn.asked, Math.max(this.counts.get(turn.asked) ?? 0, turn.ordinal + 1));
    }
  }

  /**
   * One that is still being sampled, and was asked the same before a turn that the request follows: if it is answered the same,
   * the request follows that one.
   */
  private earlierTwin({ parent }: Place): Promise<unknown> | undefined {
    for (const { asked, ordinal } of this.tree.pathOf(parent))
      for (let earlier = 0; earlier < ordinal; earlier++) {
        const twin = this.running.get(idOf(asked, earlier));
        if (twin) return twin;
      }
    return undefined;
  }

  private placeOf({ previous, messages, tools }: Ask): Place {
    if (previous === undefined) return this.tree.place(resultsInOrder(messages), tools);
    const before = this.tree.get(previous);
    if (!before)
      throw new Problem(404, 'previous_response_not_found', `There is no response ${previous} here`);
    const instructions = messages.filter(({ role }) => role === 'system');
    const said = this.tree.messagesOf(before).filter(({ role }) => role !== 'system');
    const input = messages.filter(({ role }) => role !== 'system');
    return this.tree.place(resultsInOrder([...instructions, ...said, ...input]), tools);
  }

  private ordinalFor(asked: string, { isRetry }: Sent): number {
    const count = this.counts.get(asked) ?? 0;
    // One that was asked for again by its key has an asker.
    const [first, ...others] = (this.lost.get(asked) ?? []).filter(
      (ordinal) => this.askers.get(idOf(asked, ordinal)) === 0,
    );
    this.lost.set(asked, others);
    if (first !== undefined) return first;
    if (isRetry && count > 0) return count - 1;
    this.counts.set(asked, count + 1);
    return count;
  }

  /** What a key was first used for. */
  private async claimOf(idempotencyKey: string, asked: string, sent: Sent): Promise<KeyClaim> {
    const { store, folder } = this.options;
    const key = `${folder}/keys/${digestOf(idempotencyKey)}.json`;
    const claim =
      (await store.find(key, claims)) ??
      (
        await store.putIfAbsent(key, claims, {
          body: sent.body,
          asked,
          ordinal: this.ordinalFor(asked, sent),
        })
      ).value;
    if (claim.body !== sent.body) {
      throw new Problem(
        400,
        'idempotency_key_reused',
        'The Idempotency-Key was used with another body: give each request one of its own',
      );
    }
    this.counts.set(claim.asked, Math.max(this.counts.get(claim.asked) ?? 0, claim.ordinal + 1));
    return claim;
  }

  /** Stored, running, or sampled now. */
  private turnOf(ask: Ask, place: Place, { asked, ordinal }: TurnName, { over }: Sent): Promise<StoredTurn> {
    const id = idOf(asked, ordinal);
    const known = this.tree.get(id);
    const running = known ? Promise.resolve(known) : this.running.get(id);
    if (running) return this.toBeTold(running, over);
    const isOver = this.had.has(id) && this.ended !== 'closed' ? undefined : this.overRefusal();
    if (isOver) return this.refuseWhenTold(isOver);
    const isTooLarge = this.had.has(id) ? undefined : this.sizeRefusal(ask, place);
    if (isTooLarge) return this.refuseWhenTold(isTooLarge);
    const beginning = this.beginningOf(ask, place);
    const hasNoRoom = this.roomRefusal(beginning);
    if (hasNoRoom) return this.refuseWhenTold(hasNoRoom);
    const turn = this.newTurn(ask, beginning, { id, asked, ordinal }).finally(() => this.running.delete(id));
    this.running.set(id, turn);
    return this.toBeTold(turn, over);
  }

  private toBeTold(turn: Promise<StoredTurn>, over: Promise<void>): Promise<StoredTurn> {
    this.waitFor(over);
    return turn;
  }

  /**
   * Most agents end at a refusal. Turns and calls that they have asked for at the same time are told before, or it would depend
   * on who was quicker whether the episode has them.
   */
  private async refuseWhenTold(refusal: Problem): Promise<never> {
    await untilAborted(Promise.all(this.telling), this.stop.signal);
    throw refusal;
  }

  private async newTurn(
    ask: Ask,
    beginning: Beginning,
    name: Pick<StoredTurn, 'id' | 'asked' | 'ordinal'>,
  ): Promise<StoredTurn> {
    const { store, folder } = this.options;
    const key = `${folder}/turns/${name.id}.json`;
    const turn =
      (await store.find(key, turns)) ??
      (await store.putIfAbsent(key, turns, await this.sample(ask, beginning, name))).value;
    this.tree.add(turn);
    const { promptTokens, tokens } = rowOf(this.tree.pathOf(turn));
    if (tokens.length >= this.roomAfter(promptTokens)) this.ended ??= 'tokens';
    return turn;
  }

  /** Tokens that a branch may have after its prompt. */
  private roomAfter(promptTokens: readonly number[]): number {
    const { sampling, maxPositions } = this.options;
    return Math.min(sampling.maxCompletionTokens, maxPositions - promptTokens.length);
  }

  /** Why no more turns are sampled. */
  private overRefusal(): Problem | undefined {
    if (this.tree.size + this.running.size >= this.options.sampling.maxTurns) this.ended ??= 'turns';
    if (this.ended === null) return undefined;
    const { maxTurns, maxCompletionTokens } = this.options.sampling;
    const why = {
      turns: `it has had its ${maxTurns} turns: raise sampling.maxTurns`,
      tokens: `the model has no room for more, or it has had its ${maxCompletionTokens} tokens: raise sampling.maxCompletionTokens`,
      closed: 'it is over',
    }[this.ended];
    return new Problem(409, 'episode_ended', `No more turns are sampled for this episode: ${why}`);
  }

  /** Why its tokens are not even counted, which takes seconds for each megabyte, and nothing else is done meanwhile. */
  private sizeRefusal({ tools }: Ask, { parent, added }: Place): Problem | undefined {
    const { maxPositions } = this.options;
    const most = maxPositions * MOST_BYTES_A_TOKEN;
    const toolBytes = bytesOf(tools);
    if (toolBytes > MOST_TOOL_BYTES)
      return new Problem(
        400,
        'tools_too_large',
        `The descriptions of tools may have ${MOST_TOOL_BYTES} bytes, and these have ${toolBytes}`,
        'tools',
      );
    const bytes = bytesOf(added);
    if (bytes <= most) return undefined;
    if (parent) this.ended ??= 'tokens';
    return new Problem(
      400,
      'context_length_exceeded',
      `The request adds ${bytes} bytes of messages, and the model holds ${maxPositions} tokens: of more than ${most} bytes none would fit`,
      'messages',
    );
  }

  /** Why none is sampled here. */
  private roomRefusal({ place, promptTokens, tokens, room }: Beginning): Problem | undefined {
    if (room > 0) return undefined;
    // A prompt that is too long is the agent's; what tools have said is as in any episode.
    if (place.parent) this.ended ??= 'tokens';
    const { sampling, maxPositions } = this.options;
    return new Problem(
      400,
      'context_length_exceeded',
      `The conversation has ${promptTokens.length + tokens.length} tokens, which leaves no room for a turn: the model holds ${maxPositions}, and sampling.maxCompletionTokens allows ${sampling.maxCompletionTokens} after the prompt`,
      'messages',
    );
  }

  private beginningOf(ask: Ask, place: Place): Beginning {
    const dialect = this.dialectFor(ask);
    const observed = this.observedOf(dialect, place);
    const before = rowOf(this.tree.pathOf(place.parent));
    const promptTokens = place.parent ? before.promptTokens : observed;
    const follows = place.parent ? observed : [];
    const tokens = [...before.tokens, ...follows];
    const mask = [...before.mask, ...follows.map(() => 0 as const)];
    return {
      place,
      dialect,
      observed,
      promptTokens,
      tokens,
      mask,
      room: this.roomAfter(promptTokens) - tokens.length,
    };
  }

  private async sample(
    ask: Ask,
    { place, dialect, observed, promptTokens, tokens, mask, room }: Beginning,
    name: Pick<StoredTurn, 'id' | 'asked' | 'ordinal'>,
  ): Promise<StoredTurn> {
    const { policy, tokenizer, sampling, key } = this.options;
    const session = this.sessions.after(place.parent?.id ?? null);
    const by = await this.options.turnPolicy?.(name.id);
    const whole = sampleTurn(
      {
        policy: by?.policy ?? policy,
        tokenizer,
        dialect,
        sampling,
        promptTokens,
        policySession: session,
        key: randomKey('agent-turn', key.k0, key.k1, name.id),
        signal: this.stop.signal,
      },
      { tokens, mask },
      Math.min(room, ask.maxTokens ?? room),
    ).finally(() => by?.release());
    const sampled = await whole.catch((error: unknown) => {
      policy.release(session);
      throw error;
    });
    this.sessions.keep(name.id, session);
    const text = tokenizer.decode(sampled.tokens);
    const isEnded = dialect.stopTokens.includes(sampled.tokens.at(-1) ?? -1);
    const plain = isEnded ? tokenizer.decode(sampled.tokens.slice(0, -1)) : text;
    return {
      ...name,
      parent: place.parent?.id ?? null,
      tools: ask.tools,
      messages: place.added,
      observed,
      tokens: sampled.tokens,
      samplerLogprobs: sampled.samplerLogprobs,
      ...(sampled.kept && { kept: sampled.kept }),
      finish: sampled.finish,
      text,
      answer: answerOf(dialect, { text, plain }, name.id),
      ...(sampled.served && { served: sampled.served }),
      ...(by?.weights !== undefined && { weights: by.weights }),
      created: Math.floor(Date.now() / 1000),
    };
  }

  private dialectFor({ tools }: Ask): Dialect {
    try {
      return this.options.dialectFor(tools);
    } catch (error) {
      throw new Problem(400, 'tools_not_spoken', messageOf(error), 'tools');
    }
  }

  private observedOf(dialect: Dialect, { parent, added }: Place): number[] {
    try {
      return parent ? dialect.messageTokens(added, parent.text) : dialect.promptTokens(added);
    } catch (error) {
      throw new Problem(400, 'messages_not_spoken', messageOf(error), 'messages');
    }
  }
}

/** Texts have some four; we know of no conversation that has as many in the mean. */
const MOST_BYTES_A_TOKEN = 32;
/** Not every dialect writes them, so that they are not held against what the model holds. */
const MOST_TOOL_BYTES = 2 ** 20;

const bytesOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value));

const digestOf = (value: unknown): string =>
  sha256Hex(new TextEncoder().encode(canonicalJson(JSON.parse(JSON.stringify(value)) as Json)));

const idOf = (asked: string, ordinal: number): string => digestOf([asked, ordinal]).slice(0, 32);
