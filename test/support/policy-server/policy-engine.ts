import { setTimeout as pause } from 'node:timers/promises';
import { randomKey, uniform } from '../../../core/random.ts';
import type { LoraAdapter } from '../../../engine/lora/adapter.ts';
import type { LocalPolicy } from '../../../engine/policy.ts';
import type { RandomKey } from '../../../core/random.ts';
import { distributionOf, drawFrom, truncated, untempered } from './distribution.ts';
import type { Distribution, Truncation } from './distribution.ts';
import type { Faults } from './faults.ts';
import { PrefixCache } from './prefix-cache.ts';
import { decoderOf, readAdapterFolder, readModelFolder, withHeadOf } from './served-model.ts';
import type { ModelFolder } from './served-model.ts';

/**
 * What a log-probability is of: `raw`, the model's at temperature 1; `tempered`, after the temperature and before anything
 * is cut; `processed`, after the temperature, among what top-k, top-p and min-p leave.
 */
export type LogprobsMode = 'raw' | 'tempered' | 'processed';

export interface Generation extends Truncation {
  prompt: readonly number[];
  maxTokens: number;
  /** 0 is greedy. */
  temperature: number;
  seed: number | undefined;
  stopTokens: readonly number[];
  /** The name of an adapter that is loaded. */
  adapter?: string;
  salt?: string;
  /** Whether distributions are wanted; without, none is computed. */
  logprobs: boolean;
  /** Log-probabilities of the prompt's own tokens, too. A server computes such a prompt anew, whatever its cache holds. */
  scorePrompt: boolean;
}

export interface Step {
  token: number;
  /** Where it was asked for: the whole distribution in the server's mode. */
  distribution?: Distribution;
  version: string;
}

export interface Generated {
  steps: Step[];
  /** [prompt]; nothing for its first token. */
  prompt?: (Distribution | undefined)[];
  finish: 'stop' | 'length' | 'abort';
}

interface Run {
  aborted: boolean;
}

interface Adapter {
  path: string;
  lora: LoraAdapter;
  decoder: LocalPolicy;
}

/** Tokens, weights and adapters behind both dialects. Sequences are decoded token by token, all of them together. */
export class PolicyEngine {
  base: ModelFolder & { decoder: LocalPolicy; folder: string };
  readonly adapters = new Map<string, Adapter>();
  version = 'default';
  /** `new`: what runs goes on, nothing new begins. `all`: nothing goes on. */
  paused: 'no' | 'new' | 'all' = 'no';
  private readonly runs = new Set<Run>();
  private readonly retired = new Set<LocalPolicy>();
  private readonly cache: PrefixCache;
  private readonly mode: LogprobsMode;
  private readonly faults: Faults;
  private resumed: (() => void)[] = [];
  private idle: (() => void)[] = [];
  private count = 0;

  private constructor(base: PolicyEngine['base'], mode: LogprobsMode, blockSize: number, faults: Faults) {
    this.base = base;
    this.mode = mode;
    this.cache = new PrefixCache(blockSize);
    this.faults = faults;
  }

  static async open(
    folder: string,
    { mode, blockSize, faults }: { mode: LogprobsMode; blockSize: number; faults: Faults },
  ): Promise<PolicyEngine> {
    const read = await readModelFolder(folder);
    return new PolicyEngine({ ...read, folder, decoder: await decoderOf(read) }, mode, blockSize, faults);
  }

  get running(): number {
    return this.runs.size;
  }

  async generate(asked: Generation): Promise<Generated> {
    while (this.paused !== 'no') await this.resumption();
    const run: Run = { aborted: false };
    this.runs.add(run);
    const session = `run ${++this.count}`;
    const key = randomKey(...(asked.seed === undefined ? ['unseeded', this.count] : ['seed', asked.seed]));
    const found = asked.scorePrompt ? undefined : this.found(asked);
    const used = new Set<LocalPolicy>();
    const steps: Step[] = [];
    try {
      const prompt = asked.scorePrompt ? await this.score(asked, session) : undefined;
      for (;;) {
        const end = this.endOf(asked, steps, run);
        if (end) return { steps, finish: end, ...(prompt && { prompt }) };
        const slow = this.faults.take('slow');
        if (slow) await pause(slow.ms ?? 20);
        while (this.isFrozen() && !run.aborted) await this.resumption();
        if (run.aborted) continue;
        const decoder = found ?? this.current(asked.adapter);
        used.add(decoder);
        steps.push(await this.step(decoder, session, asked, steps, key));
      }
    } finally {
      for (const decoder of used) decoder.release(session);
      this.runs.delete(run);
      if (this.runs.size === 0) for (const go of this.idle.splice(0)) go();
    }
  }

  /** Weights of another folder of the same shape, from the next token on. Throws what reading it does. */
  async reload(folder: string): Promise<void> {
    if (this.faults.take('load-forgotten')) return;
    const fresh = await readModelFolder(folder);
    const read = this.faults.take('head-forgotten') === undefined ? fresh : withHeadOf(this.base, fresh);
    const decoder = await decoderOf(read);
    const again = await Promise.all(
      [...this.adapters].map(async ([name, one]) => ({
        name,
        ...one,
        decoder: await decoderOf(read, one.lora),
      })),
    );
    this.retired.add(this.base.decoder);
    this.base = { ...read, tokenizer: this.base.tokenizer, folder: this.base.folder, decoder };
    for (const { name, ...one } of again) this.install(name, one);
  }

  /** Throws what reading it does. */
  async loadAdapter(name: string, folder: string): Promise<void> {
    const forgotten = this.faults.take('load-forgotten') !== undefined;
    const lora = await readAdapterFolder(folder, this.base.config);
    const decoder = await decoderOf(this.base, forgotten ? undefined : lora);
    this.install(name, { path: folder, lora, decoder });
  }

  unloadAdapter(name: string): void {
    const { decoder } = this.adapters.get(name)!;
    this.adapters.delete(name);
    this.retired.add(decoder);
  }

  /** Whether the cache was emptied: not while anything runs. */
  async resetCache(): Promise<boolean> {
    if (this.faults.take('reset-forgotten')) return true;
    if (this.faults.take('reset-refused') || this.runs.size > 0) return false;
    this.cache.clear();
    const old = [...this.retired];
    this.retired.clear();
    await Promise.all(old.map((decoder) => decoder.close()));
    return true;
  }

  /** What runs goes on; decoders that were replaced are closed by the next reset. */
  forgetPrefixes(): void {
    if (this.faults.peek('reset-forgotten') === undefined) this.cache.clear();
  }

  pause(what: 'new' | 'all'): void {
    this.paused = what;
  }

  resume(): void {
    this.paused = 'no';
    for (const go of this.resumed.splice(0)) go();
  }

  /** Ends what runs with what it has. Over when nothing runs. */
  async abortAll(): Promise<void> {
    for (const run of this.runs) run.aborted = true;
    for (const go of this.resumed.splice(0)) go();
    await this.drained();
  }

  /** Over when nothing runs. */
  async drained(): Promise<void> {
    if (this.runs.size > 0) await new Promise<void>((resolve) => this.idle.push(resolve));
  }

  async close(): Promise<void> {
    const all = [
      this.base.decoder,
      ...[...this.adapters.values()].map(({ decoder }) => decoder),
      ...this.retired,
    ];
    await Promise.all(all.map((decoder) => decoder.close()));
  }

  /** It changes while others wait, which the compiler cannot see of a field. */
  private isFrozen(): boolean {
    return this.paused === 'all';
  }

  private resumption(): Promise<void> {
    return new Promise((resolve) => this.resumed.push(resolve));
  }

  private install(name: string, adapter: Adapter): void {
    const before = this.adapters.get(name);
    if (before) this.retired.add(before.decoder);
    this.adapters.set(name, adapter);
  }

  private current(adapter: string | undefined): LocalPolicy {
    const loaded = adapter === undefined ? undefined : this.adapters.get(adapter);
    return loaded === undefined ? this.base.decoder : loaded.decoder;
  }

  /** Older weights, where the cache has the prompt from them; else nothing, and weights may change under way. */
  private found({ prompt, adapter, salt }: Generation): LocalPolicy | undefined {
    if (adapter !== undefined && this.faults.take('base-for-adapter')) return this.base.decoder;
    const current = this.current(adapter);
    const path = adapter === undefined ? '' : `${adapter} ${this.adapters.get(adapter)?.path}`;
    const known = this.cache.find(prompt, { adapter: path, ...(salt && { salt }) }, current);
    return known === current ? undefined : known;
  }

  private endOf(asked: Generation, steps: readonly Step[], run: Run): Generated['finish'] | undefined {
    const last = steps.at(-1);
    if (run.aborted) return 'abort';
    if (last && asked.stopTokens.includes(last.token)) return 'stop';
    if (steps.length >= asked.maxTokens) return 'length';
    const fault = this.faults.peek('abort');
    if (fault && steps.length >= (fault.tokens ?? 1)) {
      this.faults.take('abort');
      return 'abort';
    }
    return undefined;
  }

  private async step(
    decoder: LocalPolicy,
    session: string,
    asked: Generation,
    steps: readonly Step[],
    key: RandomKey,
  ): Promise<Step> {
    const { temperature, topK, topP, minP } = asked;
    const { vocabSize } = this.base.config;
    const { version } = this;
    const whole = asked.logprobs || minP > 0;
    const { tokens, alternatives } = await decoder.sample({
      session,
      prefix: asked.prompt,
      continuation: steps.map(({ token }) => token),
      maxNewTokens: 1,
      stopTokens: [],
      sampling: { temperature, topK, topP },
      key,
      ...(whole && { alternatives: { most: 0, also: [...Array(vocabSize).keys()] } }),
    });
    if (!whole) return { token: tokens[0]!, version };
    const tempered = distributionOf(alternatives![0]!, vocabSize);
    const left = temperature === 0 ? tempered : truncated(tempered, asked);
    // The decoder knows no min-p.
    const token = minP > 0 && temperature > 0 ? drawFrom(left, uniform(key, steps.length)) : tokens[0]!;
    if (!asked.logprobs) return { token, version };
    return { token, version, distribution: this.inMode(tempered, left, temperature) };
  }

  private inMode(tempered: Distribution, left: Distribution, temperature: number): Distribution {
    if (this.mode === 'processed') return left;
    return this.mode === 'raw' && temperature > 0 ? untempered(tempered, temperature) : tempered;
  }

  /** At temperature 1, by feeding the prompt token by token. */
  private async score(
    { prompt, adapter }: Generation,
    session: string,
  ): Promise<(Distribution | undefined)[]> {
    const decoder = this.current(adapter);
    const { vocabSize } = this.base.config;
    const scored: (Distribution | undefined)[] = [undefined];
    for (let at = 1; at < prompt.length; at++) {
      const { alternatives } = await decoder.sample({
        session: `${session} scored`,
        prefix: prompt.slice(0, 1),
        continuation: prompt.slice(1, at),
        maxNewTokens: 1,
        stopTokens: [],
        sampling: { temperature: 1, topK: 0, topP: 1 },
        key: randomKey('scored'),
        alternatives: { most: 0, also: [...Array(vocabSize).keys()] },
      });
      scored.push(distributionOf(alternatives![0]!, vocabSize));
    }
    decoder.release(`${session} scored`);
    return scored;
  }
}
