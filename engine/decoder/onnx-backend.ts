import { InferenceSession, Tensor } from 'onnxruntime-node';
import type { ModelConfig } from '../../core/model/config.ts';
import { buildDecoderGraph, WEIGHTS_FILE } from '../onnx/decoder-graph.ts';
import { LANES } from './backend.ts';
import type { DecoderBackend, PieceRow } from './backend.ts';
import type { Draws } from './draws.ts';
import type { KvBlock, KvRows } from './kv-block.ts';
import { Sampler } from './sampler.ts';

type Feeds = Record<string, Tensor>;

/** The tensors over a block's own memory, made anew only when its count changes. */
interface BlockFeeds {
  count: number;
  row: BigInt64Array;
  feeds: Feeds;
}

/**
 * Runs the model with stock onnxruntime-node. Its `run` copies every output it is asked for, so a step asks for the
 * new row of each cache, not for the cache, and writes it into the block here.
 */
export class OnnxBackend implements DecoderBackend {
  private readonly session: InferenceSession;
  private readonly openPieces: () => Promise<InferenceSession>;
  /** For pieces, opened when there is the first: it is one more copy of the packed weights, which the addon shares. */
  private pieces: Promise<InferenceSession> | undefined;
  private readonly config: ModelConfig;
  /** Held, because the session may read weights that it has not repacked from where they lie. */
  readonly weights: Float32Array;
  private readonly sampler: Sampler;
  private readonly parts: readonly string[];
  private readonly stepOutputs: readonly string[];
  private readonly prefillOutputs: readonly string[];
  private readonly feedsOf = new WeakMap<KvBlock, BlockFeeds>();
  private readonly logitsOf = new WeakMap<KvBlock, Float32Array>();

  private constructor(
    session: InferenceSession,
    open: (lanes: number) => Promise<InferenceSession>,
    config: ModelConfig,
    weights: Float32Array,
  ) {
    this.session = session;
    this.openPieces = () => open(LANES);
    this.weights = weights;
    this.config = config;
    this.sampler = new Sampler(config.vocabSize);
    this.parts = Array.from({ length: config.layers }, (_, layer) => [
      `${layer}.key`,
      `${layer}.value`,
    ]).flat();
    this.stepOutputs = ['logits', ...this.parts.map((part) => `last.${part}`)];
    this.prefillOutputs = ['logits', ...this.parts.map((part) => `present.${part}`)];
  }

  /** `weights` holds all tensors of `weightShapes(config)` end to end. */
  static async load(
    config: ModelConfig,
    weights: Float32Array,
    intraOpThreads: number,
    executionProviders: readonly string[] = ['cpu'],
  ): Promise<OnnxBackend> {
    const data = new Uint8Array(weights.buffer, weights.byteOffset, weights.byteLength);
    const open = (lanes: number) =>
      InferenceSession.create(buildDecoderGraph(config, { lanes }), {
        intraOpNumThreads: intraOpThreads,
        executionProviders,
        externalData: [{ path: WEIGHTS_FILE, data }],
      });
    return new OnnxBackend(await open(0), open, config, weights);
  }

  async prefill(tokens: readonly number[]): Promise<{ logits: Float32Array; rows: KvRows }> {
    const { keyValueHeads: K, headSize: D } = this.config;
    const length = tokens.length;
    const feeds: Feeds = {
      input_ids: new Tensor('int32', Int32Array.from(tokens), [1, length]),
      seqlens_k: new Tensor('int32', Int32Array.of(length - 1), [1]),
      total_sequence_length: new Tensor('int32', Int32Array.of(length), [1]),
      row: new Tensor('int64', new BigInt64Array(K).fill(BigInt(length - 1)), [1, K, 1]),
    };
    for (const part of this.parts)
      feeds[`past.${part}`] = new Tensor('float32', new Float32Array(0), [1, K, 0, D]);
    const outputs = await this.session.run(feeds, this.prefillOutputs);
    const size = K * length * D;
    const data = new Float32Array(this.parts.length * size);
    for (const [i, part] of this.parts.entries()) data.set(floats(outputs[`present.${part}`]), i * size);
    return { logits: floats(outputs['logits']), rows: { length, data } };
  }

  async step(block: KvBlock): Promise<void> {
    const { keyValueHeads: K, headSize: D } = this.config;
    const { count, capacity, lengths } = block;
    const { feeds, row } = this.feeds(block);
    for (let i = 0; i < count; i++) row.fill(BigInt(lengths[i]!), i * K, (i + 1) * K);
    const outputs = await this.session.run(feeds, this.stepOutputs);
    for (const [index, part] of this.parts.entries()) {
      const rows = floats(outputs[`last.${part}`]);
      const cache = block.parts[index]!;
      for (let i = 0, source = 0; i < count; i++) {
        for (let head = 0; head < K; head++) {
          const target = ((i * K + head) * capacity + lengths[i]!) * D;
          for (let j = 0; j < D; j++) cache[target + j] = rows[source++]!;
        }
      }
    }
    const logits = floats(outputs['logits']);
    this.logitsOf.set(block, logits);
    this.draw(block.draws, block.count, logits);
  }

  async feed(lanes: readonly PieceRow[], draws: Draws): Promise<Float32Array> {
    const { keyValueHeads: K, headSize: D, maxPositions } = this.config;
    this.pieces ??= this.openPieces();
    // A lane without a sequence computes one token that nobody reads.
    const given = Array.from({ length: LANES }, (_, i) => {
      const lane = lanes[i];
      if (lane === undefined) {
        const caches = this.parts.map(() => new Float32Array(K * D));
        return { tokens: [0], start: 0, capacity: 1, total: 1, caches };
      }
      const { block, slot, tokens } = lane;
      const { capacity } = block;
      const total = Math.min(capacity, maxPositions);
      return { tokens, start: block.lengths[slot]!, capacity, total, caches: block.views(slot) };
    });
    const sizes = given.map(({ tokens }) => tokens.length);
    let end = 0;
    const ends = sizes.map((size) => BigInt((end += size) - 1));
    const feeds: Feeds = {
      input_ids: new Tensor('int32', Int32Array.from(given.flatMap(({ tokens }) => tokens)), [1, end]),
      piece_sizes: new Tensor('int64', BigInt64Array.from(sizes, BigInt), [LANES]),
      last_index: new Tensor('int64', BigInt64Array.from(ends), [LANES]),
      seqlens_k: ints(given.map(({ start, tokens }) => start + tokens.length - 1)),
      total_sequence_length: ints(given.map(({ total }) => total)),
    };
    for (const [lane, { caches, capacity }] of given.entries()) {
      for (const [i, part] of this.parts.entries())
        feeds[`past.${part}.${lane}`] = new Tensor('float32', caches[i]!, [1, K, capacity, D]);
    }
    const wanted = lanes.flatMap((_, lane) => this.parts.map((part) => `present.${part}.${lane}`));
    const outputs = await (await this.pieces).run(feeds, ['logits', ...wanted]);
    for (const [lane, { tokens, start, capacity, caches }] of given.slice(0, lanes.length).entries()) {
      for (const [i, part] of this.parts.entries()) {
        const present = floats(outputs[`present.${part}.${lane}`]);
        for (let head = 0; head < K; head++) {
          const from = (head * capacity + start) * D;
          caches[i]!.set(present.subarray(from, from + tokens.length * D), from);
        }
      }
    }
    const logits = floats(outputs['logits']);
    this.draw(draws, lanes.length, logits);
    return logits;
  }

  logits(block: KvBlock): Float32Array {
    return this.logitsOf.get(block)!;
  }

  async dispose(): Promise<void> {
    await this.session.release();
    await (await this.pieces)?.release();
  }

  private draw(draws: Draws, count: number, logits: Float32Array): void {
    for (let slot = 0; slot < count; slot++) {
      if (draws.wanted[slot] === 0) continue;
      const sampling = {
        temperature: draws.temperature[slot]!,
        topK: draws.topK[slot]!,
        topP: draws.topP[slot]!,
      };
      draws.answer(slot, this.sampler.draw(logits, slot * this.config.vocabSize, sampling, draws.u[slot]!));
    }
  }

  private feeds(block: KvBlock): BlockFeeds {
    const { count, capacity } = block;
    const known = this.feedsOf.get(block);
    if (known?.count === count) return known;
    const { keyValueHeads: K, headSize: D } = this.config;
    // Any bound on the lengths will do, and one that stays the same need not be sent anew; the rotary caches end
    // at maxPositions.
    const longest = Math.min(capacity, this.config.maxPositions);
    const row = new BigInt64Array(count * K);
    const feeds: Feeds = {
      input_ids: new Tensor('int32', block.tokens.subarray(0, count), [count, 1]),
      seqlens_k: new Tensor('int32', block.lengths.subarray(0, count), [count]),
      total_sequence_length: new Tensor('int32', Int32Array.of(longest), [1]),
      row: new Tensor('int64', row, [count, K, 1]),
    };
    for (const [i, part] of this.parts.entries()) {
      const cache = block.parts[i]!.subarray(0, count * K * capacity * D);
      feeds[`past.${part}`] = new Tensor('float32', cache, [count, K, capacity, D]);
    }
    const made = { count, row, feeds };
    this.feedsOf.set(block, made);
    return made;
  }
}

const ints = (values: readonly number[]): Tensor =>
  new Tensor('int32', Int32Array.from(values), [values.length]);

function floats(tensor: Tensor | undefined): Float32Array {
  if (!(tensor?.data instanceof Float32Array)) throw new Error('the session gave no float32 output');
  return tensor.data;
}
