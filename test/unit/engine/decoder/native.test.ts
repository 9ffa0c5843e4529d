import { describe, expect, it } from 'vitest';
import { RandomStream } from '../../../../core/random.ts';
import { LANES } from '../../../../engine/decoder/backend.ts';
import { Draws } from '../../../../engine/decoder/draws.ts';
import { exponential } from '../../../../engine/decoder/exponential.ts';
import { KvBlock, kvShape } from '../../../../engine/decoder/kv-block.ts';
import { NativeBackend, openRequest } from '../../../../engine/decoder/native-backend.ts';
import { findAddon } from '../../../../engine/decoder/native/addon.ts';
import type { ModelConfig } from '../../../../core/model/config.ts';
import type { FeedRequest } from '../../../../engine/decoder/native/addon.ts';
import { MOST_TOP_K } from '../../../../core/names.ts';
import { Sampler } from '../../../../engine/decoder/sampler.ts';
import { flat, largeWeights, randomWeights, smallConfig } from '../../../support/engine/random-model.ts';

const found = findAddon();

describe.runIf('addon' in found)('the native addon', () => {
  if (!('addon' in found)) return;
  const { addon, library } = found;
  const weights = flat(smallConfig, randomWeights(smallConfig));
  const model = openRequest(smallConfig, weights, { threads: 1, lanes: 0 });

  it('draws the bits that the sampler in TypeScript draws', () => {
    const random = new RandomStream('native sampler');
    const out = new Float64Array(4);
    const ids = new Int32Array(MOST_TOP_K);
    for (let trial = 0; trial < 4000; trial++) {
      // Now and then the vocabulary of a large model.
      const size = trial % 200 === 0 ? random.pick([32_768, 151_936]) : random.int(1, 300);
      const spread = random.pick([0.01, 1, 10, 2000]);
      // Equal values too, and the coarse steps of a quantized model.
      const step = random.pick([0, 0.5]);
      const value = () => spread * (random.uniform() - 0.5);
      const logits = Float32Array.from({ length: size }, () =>
        step === 0 ? value() : step * Math.round(value() / step),
      );
      const settings = {
        temperature: random.pick([0, 0.3, 1, 1.7]),
        topK: random.pick([0, 1, 5, 50, 1000]),
        topP: random.pick([1, 0, 0.1, 0.5, 0.9, 0.999]),
      };
      const u = random.uniform();
      const { token, margin, total, kept = [] } = new Sampler(size).draw(logits, 0, settings, u);
      addon.draw(logits, settings.temperature, settings.topK, settings.topP, u, out, ids);
      expect([...out]).toEqual([token, margin, total, kept.length]);
      expect([...ids.subarray(0, kept.length)]).toEqual(kept);
    }
  });

  it('says what is wrong with an argument, a graph or a library, and goes on', () => {
    expect(() => addon.open('/nowhere.so', { ...model, graph: new Uint8Array(3) })).toThrow();
    expect(() => addon.open(library, { ...model, graph: new Uint8Array(3) })).toThrow();
    expect(() => addon.open(library, { ...model, weights: new Uint8Array(28) })).toThrow();
    const [tensor] = model.tensors;
    expect(() =>
      addon.open(library, { ...model, tensors: [{ ...tensor!, start: weights.byteLength }] }),
    ).toThrow(/beyond the weights/);
    expect(() => addon.open(library, { ...model, tensors: [{ ...tensor!, shape: [7] }] })).toThrow();
    expect(() => addon.open(library, { ...model, tensors: model.tensors.slice(1) })).toThrow();
    expect(() => addon.open(library, { ...model, layers: undefined as unknown as number })).toThrow(/layers/);
    const session = addon.open(library, model);
    const logits = new Float32Array(smallConfig.vocabSize);
    expect(() => addon.prefill(session, Int32Array.of(1), logits, new Float32Array(3))).toThrow(/rows/);
    expect(() => addon.prefill(session, Int32Array.of(1), new Float32Array(3), logits)).toThrow(/logits/);
    const block = new KvBlock(kvShape(smallConfig), 2, 64);
    const { parts, tokens, lengths, capacity } = block;
    const bound = { parts, tokens, lengths, capacity, count: 1, total: 64, logits };
    expect(() => addon.bind(session, { ...bound, parts: parts.slice(1) })).toThrow(/parts/);
    expect(() => addon.bind(session, { ...bound, count: 0 })).toThrow(/at least 1/);
    expect(() => addon.bind(session, { ...bound, count: 3 })).toThrow(/tokens/);
    const binding = addon.bind(session, bound);
    // A token beyond the vocabulary: onnxruntime's own refusal.
    block.tokens[0] = 10_000;
    expect(() => addon.step(binding, block.draws)).toThrow(/indices/);
    block.tokens[0] = 1;
    addon.step(binding, block.draws);
    const ofPieces = openRequest(smallConfig, weights, { threads: 1, lanes: 2 });
    const pieces = addon.open(library, ofPieces, session);
    const piece = {
      tokens: Int32Array.of(1, 2, 3),
      sizes: Int32Array.of(3),
      lengths: Int32Array.of(5),
      capacities: Int32Array.of(64),
      totals: Int32Array.of(64),
      caches: block.views(1),
      logits: new Float32Array(2 * smallConfig.vocabSize),
    };
    const feed = (change: Partial<FeedRequest>) => addon.feed(pieces, { ...piece, ...change }, block.draws);
    expect(() => addon.feed(session, piece, block.draws)).toThrow(/more pieces than lanes/);
    expect(() => feed({ sizes: Int32Array.of(1, 1, 1) })).toThrow(/more pieces than lanes/);
    expect(() => feed({ lengths: Int32Array.of(62) })).toThrow(/does not fit its cache/);
    expect(() => feed({ totals: Int32Array.of(65) })).toThrow(/does not fit its cache/);
    expect(() => feed({ sizes: Int32Array.of(4) })).toThrow(/not as long as their sizes/);
    expect(() => feed({ caches: block.views(1).slice(1) })).toThrow(/caches/);
    expect(() => feed({ logits: new Float32Array(smallConfig.vocabSize) })).toThrow(/logits/);
    feed({});
    addon.close(session);
    expect(() => addon.step(binding, block.draws)).toThrow(/closed/);
    expect(() => addon.close(session)).toThrow(/closed/);
    expect(() => addon.open(library, ofPieces, session)).toThrow(/closed/);
    // What they share is there for as long as one of them is.
    feed({});
    addon.close(pieces);
    expect(() => feed({})).toThrow(/closed/);
  });

  // A sanitizer keeps what is freed for a while, to catch who still uses it.
  const sanitized = process.env['GRADUS_DECODER_ADDON'] !== undefined;
  it.skipIf(sanitized || process.platform !== 'linux')(
    'packs the weights once, for tokens and for pieces',
    async () => {
      const config = { ...smallConfig, hiddenSize: 1024, intermediateSize: 4096, layers: 2 };
      const large = largeWeights(config);
      const backend = NativeBackend.load({ addon, library }, config, large, { threads: 1 });
      const { rows } = await backend.prefill([1, 2, 3]);
      const block = new KvBlock(kvShape(config), 1, 64);
      block.insert(rows, rows.length);
      const before = process.memoryUsage().rss;
      await backend.feed([{ block, slot: 0, tokens: [1, 2, 3] }], new Draws(LANES));
      expect(process.memoryUsage().rss - before).toBeLessThan(large.byteLength / 3);
      await backend.dispose();
    },
  );

  it.runIf(process.platform === 'linux').each([
    ['tied', {}],
    [
      'untied, with biases and norms of heads',
      { tieEmbeddings: false, queryKeyNorm: true, biases: ['qkv', 'output', 'mlp'] },
    ],
  ] as [string, Partial<ModelConfig>][])(
    'gives up exclusive weights that both sessions have packed, and computes the same bits: %s',
    async (_, change) => {
      const config = { ...smallConfig, hiddenSize: 256, intermediateSize: 512, ...change };
      const bits = async (exclusive: boolean) => {
        const own = largeWeights(config);
        const backend = NativeBackend.load({ addon, library }, config, own, { threads: 2, exclusive });
        const { logits, rows } = await backend.prefill([1, 2, 3]);
        const block = new KvBlock(kvShape(config), 1, 64);
        block.insert(rows, rows.length);
        block.tokens[0] = 7;
        await backend.step(block);
        const stepped = backend.logits(block).slice();
        block.lengths[0]!++;
        const fed = await backend.feed([{ block, slot: 0, tokens: [4, 5, 6] }], new Draws(LANES));
        const computed = [logits, stepped, fed.slice(0, config.vocabSize)];
        await backend.step(block);
        computed.push(backend.logits(block).slice(), (await backend.prefill([3, 2, 1])).logits);
        await backend.dispose();
        return { computed, zeros: own.filter((weight) => weight === 0).length / own.length };
      };
      const kept = await bits(false);
      const given = await bits(true);
      expect(given.computed).toEqual(kept.computed);
      expect(kept.zeros).toBe(0);
      // What is left of these small matrices are the pages at their ends, and the embedding.
      expect(given.zeros).toBeGreaterThan(0.8);
    },
  );

  it.skipIf(sanitized)('gives memory back when sessions come and go', async () => {
    const cycle = async () => {
      const backend = NativeBackend.load({ addon, library }, smallConfig, weights, { threads: 1 });
      const { rows } = await backend.prefill([1, 2, 3]);
      const block = new KvBlock(kvShape(smallConfig), 16, 256);
      block.insert(rows, rows.length);
      await backend.step(block);
      await backend.feed([{ block, slot: 0, tokens: [4, 5] }], block.draws);
      await backend.dispose();
    };
    for (let i = 0; i < 30; i++) await cycle();
    const before = process.memoryUsage().rss;
    for (let i = 0; i < 150; i++) await cycle();
    // Backends that were kept would hold 150 times the caches of a block, 1.5 MB each, and the model's own memory, twice.
    expect(process.memoryUsage().rss - before).toBeLessThan(150e6);
  });
});

describe('e^x', () => {
  it('is right to the last bit or next to it, and 0 where it is no normal number', () => {
    const random = new RandomStream('exponential');
    for (let i = 0; i < 20_000; i++) {
      const x = -random.uniform() * random.pick([1e-3, 1, 40, 708]);
      expect(Math.abs(exponential(x) / Math.exp(x) - 1)).toBeLessThan(4.5e-16);
    }
    expect([0, -0, -1000, -Infinity].map(exponential)).toEqual([1, 1, 0, 0]);
  });
});
