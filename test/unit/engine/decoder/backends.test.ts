import { describe, expect, it } from 'vitest';
import { RandomStream } from '../../../../core/random.ts';
import { KvBlock, kvShape } from '../../../../engine/decoder/kv-block.ts';
import { LANES } from '../../../../engine/decoder/backend.ts';
import type { DecoderBackend } from '../../../../engine/decoder/backend.ts';
import { Draws } from '../../../../engine/decoder/draws.ts';
import { createDecoderBackend, type DecoderBackendKind } from '../../../../engine/decoder/load-backend.ts';
import { findAddon } from '../../../../engine/decoder/native/addon.ts';
import type { ModelConfig } from '../../../../core/model/config.ts';
import { flat, randomWeights, smallConfig } from '../../../support/engine/random-model.ts';
import { referenceLogits } from './reference-forward.ts';

const tokensOf = (seed: number, length: number, vocabSize = smallConfig.vocabSize) => {
  const random = new RandomStream('tokens', seed);
  return Array.from({ length }, () => random.int(0, vocabSize - 1));
};

/** Logits after the prefix and after each further token, and the bits of the cache at the end. */
async function decode(backend: DecoderBackend, config: ModelConfig, prefix: number[], rest: number[]) {
  const { logits, rows } = await backend.prefill(prefix);
  const block = new KvBlock(kvShape(config), 1, 64);
  block.insert(rows, rows.length);
  const all = [logits];
  for (const token of rest) {
    block.tokens[0] = token;
    await backend.step(block);
    all.push(backend.logits(block).slice(0, config.vocabSize));
    block.lengths[0]!++;
  }
  return { all, rows: block.extract(0) };
}

const kinds: DecoderBackendKind[] = 'addon' in findAddon() ? ['native', 'stock'] : ['stock'];

describe.each(kinds)('the %s backend', (kind) => {
  const variants: [string, Partial<ModelConfig>][] = [
    ['grouped queries, tied, head size of its own', {}],
    ['untied', { tieEmbeddings: false }],
    ['as many key heads as query heads', { keyValueHeads: 4 }],
    [
      'one key head, one layer, another theta',
      { keyValueHeads: 1, layers: 1, headSize: 16, ropeTheta: 500000 },
    ],
  ];
  it.each(variants)('agrees with the equations in float64: %s', async (_, change) => {
    const config = { ...smallConfig, ...change };
    const weights = randomWeights(config);
    const backend = await createDecoderBackend(kind, config, flat(config, weights), { threads: 1 });
    const tokens = tokensOf(1, 40);
    const expected = referenceLogits(config, weights, tokens);
    const { all } = await decode(backend, config, tokens.slice(0, 11), tokens.slice(11));
    let worst = 0;
    for (const [i, logits] of all.entries()) {
      const row = expected[10 + i]!;
      for (let v = 0; v < config.vocabSize; v++) worst = Math.max(worst, Math.abs(row[v]! - logits[v]!));
    }
    expect(worst).toBeLessThan(1e-4);
    await backend.dispose();
  });

  it.each([1, 2])('gives a sequence the same bits in any company (%i threads inside)', async (threads) => {
    const config = smallConfig;
    const backend = await createDecoderBackend(kind, config, flat(config, randomWeights(config)), {
      threads,
    });
    const prefix = tokensOf(2, 9);
    const rest = tokensOf(3, 50);
    const alone = await decode(backend, config, prefix, rest);
    const prefill = await backend.prefill(prefix);
    for (const [neighbours, capacity] of [
      [0, 256],
      [1, 64],
      [2, 64],
      [4, 128],
      [7, 64],
      [15, 64],
      [15, 300],
      [32, 128],
      [63, 64],
    ] as const) {
      const block = new KvBlock(kvShape(config), neighbours + 1, capacity);
      const place = Math.floor(neighbours / 2);
      const lengths: number[] = [];
      for (let i = 0; i <= neighbours; i++) {
        const rows =
          i === place ? prefill.rows : (await backend.prefill(tokensOf(100 + i, 1 + (i % 12)))).rows;
        lengths.push(rows.length);
        block.insert(rows, rows.length);
      }
      for (const [step, token] of rest.entries()) {
        for (let i = 0; i <= neighbours; i++) block.tokens[i] = (i * 31 + step * 7) % config.vocabSize;
        block.tokens[place] = token;
        await backend.step(block);
        const logits = backend.logits(block);
        const row = logits.subarray(place * config.vocabSize, (place + 1) * config.vocabSize);
        expect(Buffer.from(row.slice().buffer).equals(Buffer.from(alone.all[step + 1]!.buffer))).toBe(true);
        for (let i = 0; i <= neighbours; i++) block.lengths[i]!++;
      }
      expect(block.extract(place)).toEqual(alone.rows);
    }
    await backend.dispose();
  });

  it.each([1, 2])('gives a piece the same bits in any company (%i threads inside)', async (threads) => {
    const config = { ...smallConfig, ...(threads === 2 && { queryKeyNorm: true as const }) };
    const backend = await createDecoderBackend(kind, config, flat(config, randomWeights(config)), {
      threads,
    });
    /** Pieces of these sizes, each in a slot and a block of its own; the first is looked at. */
    const feed = async (sizes: readonly number[], capacity: number) => {
      const draws = new Draws(LANES);
      const lanes = [];
      for (const [i, size] of sizes.entries()) {
        const block = new KvBlock(kvShape(config), 3, i === 0 ? capacity : 128);
        const { rows } = await backend.prefill(tokensOf(10 + i, 9 + i));
        for (let slot = 0; slot <= i % 3; slot++) block.insert(rows, rows.length);
        draws.ask(i, { sampling: { temperature: 1, topK: 0, topP: 1 }, u: 0.4 });
        lanes.push({ block, slot: i % 3, tokens: tokensOf(20 + i, size) });
      }
      await backend.feed(lanes, draws);
      const { block } = lanes[0]!;
      block.lengths[0]! += sizes[0]!;
      return { token: draws.token[0], logprob: draws.logprob(0), rows: block.extract(0) };
    };
    for (const size of [1, 16, 37, 64]) {
      const alone = await feed([size], 128);
      for (const others of [[1], [16, 16], [64, 1, 5, 17], [64, 64, 64, 64, 64, 64, 64]]) {
        expect(await feed([size, ...others], 128)).toEqual(alone);
      }
      expect(await feed([size], 256)).toEqual(alone);
      expect(await feed([size, 20], 300)).toEqual(alone);
    }
    await backend.dispose();
  });

  it('shows that pieces matter: a history fed whole differs from one fed token by token', async () => {
    const backend = await createDecoderBackend(
      kind,
      smallConfig,
      flat(smallConfig, randomWeights(smallConfig)),
      { threads: 1 },
    );
    const tokens = tokensOf(4, 60);
    const whole = await backend.prefill(tokens);
    const { all } = await decode(backend, smallConfig, tokens.slice(0, 5), tokens.slice(5));
    expect(all.at(-1)).not.toEqual(whole.logits);
    await backend.dispose();
  });
});
