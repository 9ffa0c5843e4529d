import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ModelConfig } from '../../core/model/config.ts';
import { decoderGraph, EMBEDDING } from '../onnx/decoder-graph.ts';
import { encodeModel } from '../onnx/onnx-proto.ts';
import { LANES } from './backend.ts';
import type { BackendOptions, DecoderBackend, PieceRow } from './backend.ts';
import type { Draws } from './draws.ts';
import type { KvBlock, KvRows } from './kv-block.ts';
import type { DecoderBinding, NativeAddon, OpenRequest, DecoderSession } from './native/addon.ts';
import { dtypeOf } from './packed-weights.ts';
import type { DecoderWeights } from './packed-weights.ts';

interface BoundBlock {
  count: number;
  binding: DecoderBinding;
  logits: Float32Array;
}

/**
 * Runs the model through the addon in native/: the block's own memory is past and present of every step, and tokens are
 * drawn where the logits lie. With float32 weights the same library and the same operations as the stock backend, so the
 * same bits.
 */
export class NativeBackend implements DecoderBackend {
  private readonly addon: NativeAddon;
  private readonly config: ModelConfig;
  private readonly session: DecoderSession;
  private readonly openPieces: () => DecoderSession;
  /** For pieces, opened when there is the first; it shares the packed weights. */
  private pieces: { session: DecoderSession; logits: Float32Array } | undefined;
  private readonly bound = new WeakMap<KvBlock, BoundBlock>();

  private constructor(
    addon: NativeAddon,
    config: ModelConfig,
    open: (lanes: number, ...sibling: DecoderSession[]) => DecoderSession,
  ) {
    this.addon = addon;
    this.config = config;
    this.session = open(0);
    this.openPieces = () => open(LANES, this.session);
  }

  /**
   * The sessions read the weights where they are. `exclusive` ones nobody else reads: once both sessions have packed the
   * matrices, their pages go back, and the bytes are lost.
   */
  static load(
    { addon, library }: { addon: NativeAddon; library: string },
    config: ModelConfig,
    weights: DecoderWeights,
    { threads, exclusive = false }: BackendOptions,
  ): NativeBackend {
    return new NativeBackend(addon, config, (lanes, ...sibling) => {
      const request = openRequest(config, weights, { threads, lanes });
      const session = addon.open(library, request, ...sibling);
      if (exclusive && sibling.length > 0) for (const matrix of packedIn(request)) addon.discard(...matrix);
      return session;
    });
  }

  async prefill(tokens: readonly number[]): Promise<{ logits: Float32Array; rows: KvRows }> {
    const { layers, keyValueHeads, headSize, vocabSize } = this.config;
    const length = tokens.length;
    const logits = new Float32Array(vocabSize);
    const data = new Float32Array(2 * layers * keyValueHeads * length * headSize);
    this.addon.prefill(this.session, Int32Array.from(tokens), logits, data);
    await nextTurn();
    return { logits, rows: { length, data } };
  }

  async step(block: KvBlock): Promise<void> {
    this.addon.step(this.bindingOf(block).binding, block.draws);
    // Orders that came meanwhile are taken between steps.
    await nextTurn();
  }

  async feed(lanes: readonly PieceRow[], draws: Draws): Promise<Float32Array> {
    const { vocabSize, maxPositions } = this.config;
    this.pieces ??= { session: this.openPieces(), logits: new Float32Array(LANES * vocabSize) };
    const { session, logits } = this.pieces;
    const capacities = Int32Array.from(lanes, ({ block }) => block.capacity);
    const piece = {
      tokens: Int32Array.from(lanes.flatMap(({ tokens }) => tokens)),
      sizes: Int32Array.from(lanes, ({ tokens }) => tokens.length),
      lengths: Int32Array.from(lanes, ({ block, slot }) => block.lengths[slot]!),
      capacities,
      totals: capacities.map((capacity) => Math.min(capacity, maxPositions)),
      caches: lanes.flatMap(({ block, slot }) => block.views(slot)),
      logits,
    };
    this.addon.feed(session, piece, draws);
    await nextTurn();
    return logits;
  }

  logits(block: KvBlock): Float32Array {
    return this.bindingOf(block).logits;
  }

  dispose(): Promise<void> {
    this.addon.close(this.session);
    if (this.pieces !== undefined) this.addon.close(this.pieces.session);
    return Promise.resolve();
  }

  private bindingOf(block: KvBlock): BoundBlock {
    const known = this.bound.get(block);
    if (known?.count === block.count) return known;
    const { slots, count, capacity, parts, tokens, lengths } = block;
    const { vocabSize, maxPositions } = this.config;
    const logits = known?.logits ?? new Float32Array(slots * vocabSize);
    // Any bound on the lengths will do, and one that stays the same need not be bound anew; the rotary caches end at
    // maxPositions.
    const total = Math.min(capacity, maxPositions);
    const binding = this.addon.bind(this.session, {
      parts,
      tokens,
      lengths,
      logits,
      count,
      capacity,
      total,
    });
    const made = { count, binding, logits };
    this.bound.set(block, made);
    return made;
  }
}

/** Matrices that the library packs, as `discard` takes them: all in float32 but the embedding, where tokens look up their rows. */
const packedIn = ({ weights, tensors }: OpenRequest): [weights: Uint8Array, start: number, bytes: number][] =>
  tensors
    .filter(({ name, type, shape }) => type === 'float32' && shape.length === 2 && name !== EMBEDDING)
    .map(({ start, shape }) => [weights, start, shape[0]! * shape[1]! * Float32Array.BYTES_PER_ELEMENT]);

/** A session for prompts and decoding, or with `lanes` for pieces of that many sequences. */
export function openRequest(
  config: ModelConfig,
  weights: DecoderWeights,
  { threads, lanes }: { threads: number; lanes: number },
): OpenRequest {
  const graph = decoderGraph(config, { lastRows: false, lanes, dtype: dtypeOf(weights) });
  const { buffer, byteOffset, byteLength } = 'dtype' in weights ? weights.data : weights;
  return {
    graph: encodeModel(graph),
    weights: new Uint8Array(buffer, byteOffset, byteLength),
    tensors: graph.initializers.flatMap(({ name, type, shape, data }) =>
      'offset' in data ? [{ name, type, shape, start: data.offset }] : [],
    ),
    threads,
    layers: config.layers,
    heads: config.keyValueHeads,
    headSize: config.headSize,
    vocabulary: config.vocabSize,
    lanes,
  };
}
