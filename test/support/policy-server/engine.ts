import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { randomKey } from '../../../core/random.ts';
import type { ModelConfig, Weights } from '../../../core/model/config.ts';
import { createDecoder } from '../../../engine/decoder/decoder.ts';
import { loadHfDirectory } from '../../../engine/hf-directory.ts';
import { ADAPTER_CONFIG, ADAPTER_MODEL, readPeftAdapter } from '../../../engine/lora/peft-format.ts';
import type { LoraAdapter } from '../../../engine/lora/adapter.ts';
import type { LocalPolicy } from '../../../engine/policy.ts';

export interface EngineRequest {
  model: string;
  tokens: readonly number[];
  maxNewTokens: number;
  stopTokens: readonly number[];
  temperature: number;
  seed: number;
}

/** Models by name over the decoder of Gradus: a base, whose weights can be replaced, and adapters of it. */
export class Engine {
  readonly base: string;
  config!: ModelConfig;
  private weights!: Weights;
  private readonly policies = new Map<string, LocalPolicy>();
  private versions = 0;
  private sessions = 0;

  constructor(base: string) {
    this.base = base;
  }

  static async open(folder: string, base: string): Promise<Engine> {
    const engine = new Engine(base);
    await engine.reload(folder);
    return engine;
  }

  has(model: string): boolean {
    return this.policies.has(model);
  }

  get adapters(): string[] {
    return [...this.policies.keys()].filter((name) => name !== this.base);
  }

  /** Throws what a reader says of a damaged folder. */
  async reload(folder: string): Promise<void> {
    const { config, weights } = await loadHfDirectory(folder);
    [this.config, this.weights] = [config, weights];
    await this.put(this.base);
  }

  async loadAdapter(name: string, folder: string): Promise<void> {
    const config = JSON.parse(await readFile(join(folder, ADAPTER_CONFIG), 'utf8')) as never;
    const adapter = readPeftAdapter(config, await readFile(join(folder, ADAPTER_MODEL)), this.config);
    await this.put(name, adapter);
  }

  /** The base's weights under another name. */
  async alias(name: string): Promise<void> {
    await this.put(name);
  }

  async unload(name: string): Promise<void> {
    await this.policies.get(name)?.close();
    this.policies.delete(name);
  }

  async sample(request: EngineRequest, signal?: AbortSignal) {
    const { tokens, maxNewTokens, stopTokens, temperature, seed } = request;
    const policy = this.policies.get(request.model)!;
    const session = `request-${++this.sessions}`;
    try {
      return await policy.sample(
        {
          session,
          prefix: tokens,
          continuation: [],
          maxNewTokens: Math.min(maxNewTokens, this.config.maxPositions - tokens.length),
          stopTokens,
          sampling: { temperature, topK: 0, topP: 1 },
          key: randomKey('policy-server', seed),
        },
        signal,
      );
    } finally {
      policy.release(session);
    }
  }

  /** [T − 1] */
  async score(model: string, tokens: readonly number[]): Promise<number[]> {
    const policy = this.policies.get(model)!;
    const scores = tokens.slice(1).map(async (token, i) => {
      const session = `score-${++this.sessions}`;
      const { alternatives } = await policy.sample({
        session,
        prefix: tokens.slice(0, i + 1),
        continuation: [],
        maxNewTokens: 1,
        stopTokens: [],
        sampling: { temperature: 1, topK: 0, topP: 1 },
        key: randomKey('score'),
        alternatives: { most: 0, also: [token] },
      });
      policy.release(session);
      return alternatives![0]!.find((one) => one.token === token)!.logprob;
    });
    return Promise.all(scores);
  }

  async close(): Promise<void> {
    await Promise.all([...this.policies.values()].map((policy) => policy.close()));
  }

  private async put(name: string, adapter?: LoraAdapter): Promise<void> {
    const policy = this.policies.get(name) ?? createDecoder({ threads: 1 });
    await policy.load(`version-${++this.versions}`, this.config, this.weights, adapter);
    this.policies.set(name, policy);
  }
}
