import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { deserialize, serialize } from 'node:v8';
import type { ModelConfig, Weights } from '../../../core/model/config.ts';
import type { Learner, TrainBatch, TrainState } from '../../../engine/learner/contract.ts';
import type { LocalPolicy } from '../../../engine/policy.ts';
import { decoderOf } from '../policy-server/served-model.ts';
import { initialAdapter } from '../../../engine/lora/initial-adapter.ts';
import { LORA_MODULES } from '../../../core/names.ts';

/** One sequence of a request: [T − 1] each, targets one place ahead of the input. */
export interface Datum {
  tokens: number[];
  /** What the gradient of its loss by each log-prob is, of these log-probs. */
  slopes: number[];
}

/** A model with an adapter, and the gradients that wait for its next step. */
export interface ServedModel {
  state: TrainState;
  waiting: Datum[];
}

type Kept = Required<Pick<TrainState, 'adapter' | 'firstMoments' | 'secondMoments' | 'updates'>>;

/** Models of a server of ours, computed by our own learner; what is saved lies in a folder, as the real one's does. */
export class Models {
  readonly models = new Map<string, ServedModel>();
  private readonly learner: Learner;
  private readonly folder: string;
  readonly config: ModelConfig;
  /** Of saved samplers, by their names; '' is the base. */
  private readonly decoders = new Map<string, Promise<LocalPolicy>>();
  readonly weights: Weights;

  constructor(learner: Learner, folder: string, config: ModelConfig, weights: Weights) {
    this.learner = learner;
    this.folder = folder;
    this.config = config;
    this.weights = weights;
  }

  create(id: string, rank: number, seed: number): void {
    const lora = { rank, alpha: 32, rsLora: false, targetModules: [...LORA_MODULES] };
    const { config, weights } = this;
    const adapter = { lora, weights: initialAdapter(config, lora, seed) };
    const state = { config, weights, adapter, firstMoments: new Map(), secondMoments: new Map(), updates: 0 };
    this.models.set(id, { state, waiting: [] });
  }

  /** [T − 1] log-probs of each sequence's targets. */
  async logprobs({ state }: ServedModel, sequences: number[][]): Promise<number[][]> {
    const batch = batchOf(sequences.map((tokens) => ({ tokens, slopes: tokens.slice(1).map(() => 1) })));
    const { logprobs } = await this.learner.score(state, batch, { logprobs: { temperature: 1, topK: 0 } });
    return sequences.map((tokens, i) => [
      ...logprobs!.subarray(batch.offsets[i]! + 1, batch.offsets[i]! + tokens.length),
    ]);
  }

  /**
   * A step of Adam by the sum of what waits, as the API has it: ε beside the corrected √v. REINFORCE has the gradient
   * −A ∇ log p of each token, and its mean over tokens is taken out again.
   */
  async step(
    model: ServedModel,
    adam: {
      learning_rate: number;
      beta1: number;
      beta2: number;
      eps: number;
      grad_clip_norm?: number | undefined;
    },
  ): Promise<number> {
    const data = model.waiting.length > 0 ? model.waiting : [{ tokens: [1, 2], slopes: [0] }];
    const batch = batchOf(data);
    const counted = batch.mask.reduce((sum, bit) => sum + bit, 0);
    batch.streams.advantages = batch.streams.advantages!.map((slope) => -slope * counted);
    const correction = Math.sqrt(1 - adam.beta2 ** (model.state.updates + 1));
    const { state, metrics } = await this.learner.step(model.state, batch, {
      objective: {
        kind: 'reinforce',
        temperature: 1,
        topK: 0,
        aggregation: 'token',
        maxCompletionTokens: 0,
        importanceCap: 0,
      },
      optimizer: {
        learningRate: adam.learning_rate,
        warmupUpdates: 0,
        beta1: adam.beta1,
        beta2: adam.beta2,
        epsilon: adam.eps * correction,
        maxGradientNorm: adam.grad_clip_norm ?? 0,
      },
    });
    model.state = state;
    model.waiting = [];
    return metrics.gradientNorm!;
  }

  async save({ state }: ServedModel, name: string): Promise<void> {
    const { adapter, firstMoments, secondMoments, updates } = state;
    const to = path.join(this.folder, name);
    await mkdir(path.dirname(to), { recursive: true });
    await writeFile(`${to}.part`, serialize({ adapter, firstMoments, secondMoments, updates }));
    await rename(`${to}.part`, to);
  }

  /** Of a saved sampler's weights, as they were when it was saved. */
  decoder(name: string): Promise<LocalPolicy> {
    const known = this.decoders.get(name);
    if (known) return known;
    const made = (async () => {
      const adapter = name === '' ? undefined : (await this.read(name)).adapter;
      return decoderOf(this, adapter);
    })();
    this.decoders.set(name, made);
    return made;
  }

  /** A model that stands at a saved sampler's weights; the base without one. */
  async savedModel(name: string): Promise<ServedModel> {
    const { config, weights } = this;
    const none = { config, weights, firstMoments: new Map(), secondMoments: new Map(), updates: 0 };
    return { state: name === '' ? none : { ...none, ...(await this.read(name)) }, waiting: [] };
  }

  /** Puts a saved sampler's weights into its model, as SkyRL 0.3.0 does to sample with them. */
  async overwrite(model: ServedModel, name: string): Promise<void> {
    model.state = { ...model.state, adapter: (await this.read(name)).adapter };
  }

  /** What waits stays, as SkyRL 0.3.0 has it. */
  async load(model: ServedModel, name: string): Promise<void> {
    model.state = { ...model.state, ...(await this.read(name)) };
  }

  private async read(name: string): Promise<Kept> {
    return deserialize(await readFile(path.join(this.folder, name))) as Kept;
  }
}

function batchOf(data: readonly Datum[]): TrainBatch {
  const tokens = data.flatMap((datum) => datum.tokens);
  const offsets = [0];
  for (const datum of data) offsets.push(offsets.at(-1)! + datum.tokens.length);
  return {
    tokens: Int32Array.from(tokens),
    offsets: Int32Array.from(offsets),
    mask: Float32Array.from(data.flatMap((datum) => [0, ...datum.slopes.map(() => 1)])),
    streams: { advantages: Float32Array.from(data.flatMap((datum) => [0, ...datum.slopes])) },
    sequences: {},
    updates: [Int32Array.from(data.keys())],
  };
}
