import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { randomKey, RandomStream } from '../../../../core/random.ts';
import { LANES } from '../../../../engine/decoder/backend.ts';
import { createDecoder } from '../../../../engine/decoder/decoder.ts';
import { Draws } from '../../../../engine/decoder/draws.ts';
import { KvBlock, kvShape } from '../../../../engine/decoder/kv-block.ts';
import { createDecoderBackend, type DecoderBackendKind } from '../../../../engine/decoder/load-backend.ts';
import { findAddon } from '../../../../engine/decoder/native/addon.ts';
import { packedLayout, packInPieces } from '../../../../engine/decoder/packed-weights.ts';
import type { DecoderWeights } from '../../../../engine/decoder/packed-weights.ts';
import { atOnce } from '../../../../engine/in-pieces.ts';
import type { ModelConfig } from '../../../../core/model/config.ts';
import type { LocalPolicy } from '../../../../engine/policy.ts';
import { largeWeights, named } from '../../../support/engine/random-model.ts';

// How many threads share a product decides how it is cut, and with it, in kernels that are not made for it, the order in
// which it is summed. Here every graph at sizes at which products are shared, alone and in company.

const THREADS = [1, 2, 3, 4, 8];
const kinds: DecoderBackendKind[] = 'addon' in findAddon() ? ['native', 'stock'] : ['stock'];

const common = {
  layers: 2,
  attentionHeads: 4,
  keyValueHeads: 2,
  headSize: 32,
  maxPositions: 512,
  rmsNormEpsilon: 1e-6,
  ropeTheta: 10_000,
  tieEmbeddings: true,
};
const shapes: Record<string, ModelConfig> = {
  'hidden 64, vocabulary 512': { ...common, vocabSize: 512, hiddenSize: 64, intermediateSize: 177 },
  'hidden 128, vocabulary 32,768': { ...common, vocabSize: 32_768, hiddenSize: 128, intermediateSize: 384 },
  'hidden 200, untied, odd sizes': {
    ...common,
    vocabSize: 4001,
    hiddenSize: 200,
    intermediateSize: 617,
    layers: 3,
    attentionHeads: 6,
    headSize: 48,
    tieEmbeddings: false,
    queryKeyNorm: true,
  },
  'hidden 1024, untied, with biases': {
    ...common,
    vocabSize: 512,
    hiddenSize: 1024,
    intermediateSize: 2731,
    layers: 1,
    attentionHeads: 8,
    headSize: 128,
    tieEmbeddings: false,
    biases: ['qkv'],
  },
};
/** Qwen2.5-0.5B's: 2 GB of weights and 4 to 7 GB of memory, a quarter of an hour on two cores. */
const halfBillion: ModelConfig = {
  ...common,
  vocabSize: 151_936,
  hiddenSize: 896,
  intermediateSize: 4864,
  layers: 24,
  attentionHeads: 14,
  headSize: 64,
  biases: ['qkv'],
};

const sampling = { temperature: 1, topK: 0, topP: 0.95 };
const tokensOf = (seed: number, length: number, vocabSize: number) => {
  const random = new RandomStream('thread count', seed);
  return Array.from({ length }, () => random.int(0, vocabSize - 1));
};

function digest(...arrays: readonly (Float32Array | Float64Array)[]): string {
  const hash = createHash('sha256');
  for (const { buffer, byteOffset, byteLength } of arrays)
    hash.update(new Uint8Array(buffer, byteOffset, byteLength));
  return hash.digest('hex').slice(0, 16);
}

/** Digests of what a sequence gets from each graph, by what it was fed and, behind a slash, in which company. */
async function probe(
  kind: DecoderBackendKind,
  config: ModelConfig,
  weights: DecoderWeights,
  threads: number,
) {
  const backend = await createDecoderBackend(kind, config, weights, { threads });
  const { vocabSize } = config;
  const found = new Map<string, string>();
  for (const length of [1, 40, 200]) {
    const { logits, rows } = await backend.prefill(tokensOf(1, length, vocabSize));
    found.set(`prompt of ${length}`, digest(logits, rows.data));
  }
  const { rows } = await backend.prefill(tokensOf(2, 9, vocabSize));
  const block = (slots: number) => {
    const made = new KvBlock(kvShape(config), slots, 128);
    for (let slot = 0; slot < slots; slot++) made.insert(rows, rows.length);
    return made;
  };
  const drawn = ({ token, margin, total }: Draws, row: number) =>
    Float64Array.of(token[row]!, margin[row]!, total[row]!);
  for (const size of [16, 17, 64]) {
    for (const others of [[], [64, 64, 64, 64, 64, 64, 64], [1, 1, 1]]) {
      const draws = new Draws(LANES);
      const lanes = [...others, size].map((length, lane) => {
        const isOther = lane < others.length;
        return { block: block(1), slot: 0, tokens: tokensOf(isOther ? 10 + lane : 3, length, vocabSize) };
      });
      draws.ask(others.length, { sampling, u: 0.3 });
      await backend.feed(lanes, draws);
      const mine = lanes.at(-1)!.block;
      mine.lengths[0]! += size;
      const bits = digest(mine.extract(0).data, drawn(draws, others.length));
      found.set(`piece of ${size} / ${others.length} others of ${others[0] ?? 0}`, bits);
    }
  }
  for (const slots of [1, 5, 64]) {
    const batch = block(slots);
    const mine = slots - 1;
    for (let slot = 0; slot < mine; slot++) batch.tokens[slot] = slot;
    batch.tokens[mine] = 7;
    batch.draws.ask(mine, { sampling, u: 0.6 });
    await backend.step(batch);
    const logits = backend.logits(batch).slice(mine * vocabSize, slots * vocabSize);
    batch.lengths[mine]!++;
    found.set(`token / ${mine} others`, digest(logits, batch.extract(mine).data, drawn(batch.draws, mine)));
  }
  await backend.dispose();
  return found;
}

/** Of the probes with another digest than the first one of the same feed, the names. */
function deviations(probes: readonly [string, Map<string, string>][]): string[] {
  const expected = new Map<string, string>();
  return probes.flatMap(([where, found]) =>
    [...found].flatMap(([what, bits]) => {
      const fed = what.split(' / ')[0]!;
      if (!expected.has(fed)) expected.set(fed, bits);
      return expected.get(fed) === bits ? [] : [`${what}, ${where}`];
    }),
  );
}

async function everyWay(config: ModelConfig): Promise<[string, Map<string, string>][]> {
  const weights = largeWeights(config);
  const probes: [string, Map<string, string>][] = [];
  for (const kind of kinds) {
    for (const threads of THREADS) {
      probes.push([`${kind}, ${threads} threads`, await probe(kind, config, weights, threads)]);
    }
  }
  return probes;
}

describe('prompts, pieces and tokens have the same bits in any company, on any number of threads', () => {
  it.each(Object.entries(shapes))('%s', async (_, config) => {
    expect(deviations(await everyWay(config))).toEqual([]);
  });

  const found = findAddon();
  it
    .runIf('addon' in found)
    .each(
      (['bfloat16', 'int8'] as const).flatMap((dtype) =>
        Object.keys(shapes).map((name) => [dtype, name] as const),
      ),
    )('weights in %s, %s', async (dtype, name) => {
    if (!('addon' in found)) return;
    const config = shapes[name]!;
    const data = new Uint8Array(packedLayout(config, dtype).bytes);
    const weights = { dtype, data };
    atOnce(packInPieces(found.addon, config, named(config, largeWeights(config)), weights));
    const probes: [string, Map<string, string>][] = [];
    for (const threads of THREADS)
      probes.push([`${threads} threads`, await probe('native', config, weights, threads)]);
    expect(deviations(probes)).toEqual([]);
  });

  it.runIf(process.env['GRADUS_SLOW_TESTS'] === '1')(
    'half a billion parameters, vocabulary 151,936',
    async () => {
      expect(deviations(await everyWay(halfBillion))).toEqual([]);
    },
    3_600_000,
  );
});

it('a model above four million parameters samples the same behind long observations, all at once and one by one', async () => {
  const config = { ...common, vocabSize: 512, hiddenSize: 128, intermediateSize: 6000 };
  const { vocabSize } = config;
  const weights = named(config, largeWeights(config));
  const sampleBehind = async (decoder: LocalPolicy, pass: string, episode: number, observed: number) => {
    const prefix = tokensOf(episode, 9 + episode, vocabSize);
    const session = `${pass}/${episode}`;
    const request = { session, prefix, stopTokens: [], sampling, key: randomKey(episode) };
    const first = await decoder.sample({ ...request, continuation: [], maxNewTokens: 4 });
    const continuation = [...first.tokens, ...tokensOf(episode, observed, vocabSize)];
    const mask = continuation.map((_, i) => (i < first.tokens.length ? 1 : 0));
    const second = await decoder.sample({ ...request, continuation, mask, maxNewTokens: 3 });
    return [first, second];
  };
  const observed = [16, 17, 64, 200, 64, 3];
  const expected: unknown[] = [];
  for (const kind of kinds) {
    for (const threads of THREADS) {
      const decoder = createDecoder({ backend: kind, threads });
      await decoder.load('large', config, weights);
      const together = await Promise.all(observed.map((n, i) => sampleBehind(decoder, 'together', i, n)));
      const alone = [];
      for (const [i, n] of observed.entries()) alone.push(await sampleBehind(decoder, 'alone', i, n));
      await decoder.close();
      if (expected.length === 0) expected.push(...alone);
      expect(together, `${kind}, ${threads} threads, all at once`).toEqual(expected);
      expect(alone, `${kind}, ${threads} threads, one by one`).toEqual(expected);
    }
  }
});
