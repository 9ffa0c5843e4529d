import { describe, expect, it } from 'vitest';
import type { ModelConfig } from '../../../../core/model/config.ts';
import { randomKey, RandomStream } from '../../../../core/random.ts';
import { createDecoder } from '../../../../engine/decoder/decoder.ts';
import { LANES } from '../../../../engine/decoder/backend.ts';
import { Draws } from '../../../../engine/decoder/draws.ts';
import { KvBlock, kvShape } from '../../../../engine/decoder/kv-block.ts';
import { findAddon } from '../../../../engine/decoder/native/addon.ts';
import { NativeBackend } from '../../../../engine/decoder/native-backend.ts';
import { packedLayout, packInPieces } from '../../../../engine/decoder/packed-weights.ts';
import type { DecoderWeights } from '../../../../engine/decoder/packed-weights.ts';
import { atOnce } from '../../../../engine/in-pieces.ts';
import { initialAdapter } from '../../../../engine/lora/initial-adapter.ts';
import { mergeAdapter } from '../../../../engine/lora/merge-adapter.ts';
import { packedMatrix, storedBytes } from '../../../../engine/onnx/packed-matrix.ts';
import type { PackedDtype } from '../../../../engine/onnx/packed-matrix.ts';
import { runCommand } from '../../../../infra/setup/command.ts';
import { decode, encode } from '../../../../engine/safetensors/dtypes.ts';
import { flat, randomWeights, smallConfig } from '../../../support/engine/random-model.ts';

const found = findAddon();
const dtypes: PackedDtype[] = ['bfloat16', 'int8'];

/** A matrix [.., in] as its dtype has it. */
function rounded(weights: Float32Array, columns: number, dtype: PackedDtype): Float32Array {
  if (dtype === 'bfloat16') return decode(encode(weights, 'BF16'), 'BF16') as Float32Array;
  const result = new Float32Array(weights.length);
  for (let start = 0; start < weights.length; start += columns) {
    const row = weights.subarray(start, start + columns);
    const most = row.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
    const [scale, factor] = [Math.fround(most / 127), Math.fround(127 / most)];
    for (const [i, value] of row.entries()) {
      const scaled = Math.fround(value * factor);
      const down = Math.floor(scaled);
      const half = scaled - down;
      // To the nearest, ties to even.
      const whole = half > 0.5 || (half === 0.5 && down % 2 !== 0) ? down + 1 : down;
      result[start + i] = Math.min(127, Math.max(-127, whole)) * scale;
    }
  }
  return result;
}

const values = (seed: number, length: number): Float32Array => {
  const random = new RandomStream('packed', seed);
  return Float32Array.from({ length }, () => random.uniform() - 0.5);
};

describe.runIf('addon' in found)('packed weights', () => {
  if (!('addon' in found)) return;
  const { addon } = found;

  it.each(dtypes)(
    'multiply rows by the rounded matrix, with the same bits on every processor: %s',
    (dtype) => {
      for (const [out, inputs] of [
        [1, 1],
        [64, 2],
        [97, 47],
        [130, 1026],
        [200, 2049],
      ] as const) {
        const matrix = packedMatrix(dtype, [out, inputs]);
        const data = new Uint8Array(storedBytes([out, inputs], dtype));
        const weights = values(out, out * inputs);
        // In two parts, as the projections into attention come.
        const cut = Math.floor(out / 3) * inputs;
        if (cut > 0) addon.pack(matrix, data, 0, weights.subarray(0, cut));
        addon.pack(matrix, data, cut / inputs, weights.subarray(cut));
        const exact = rounded(weights, inputs, dtype);
        const rows = 13;
        const x = values(inputs, rows * inputs);
        const results = addon.kernels.map((kernels) => {
          const y = new Float32Array(rows * out);
          addon.multiply(kernels, matrix, data, x, y);
          return y;
        });
        for (const y of results) expect(y).toEqual(results[0]);
        const alone = new Float32Array(out);
        addon.multiply(addon.kernels[0]!, matrix, data, x.subarray(5 * inputs, 6 * inputs), alone);
        expect(alone).toEqual(results[0]!.slice(5 * out, 6 * out));
        let worst = 0;
        for (let row = 0; row < rows; row++) {
          for (let o = 0; o < out; o++) {
            let sum = 0;
            for (let k = 0; k < inputs; k++) sum += x[row * inputs + k]! * exact[o * inputs + k]!;
            worst = Math.max(worst, Math.abs(sum - results[0]![row * out + o]!));
          }
        }
        expect(worst).toBeLessThan(1e-4);
      }
      expect(addon.kernels.at(-1)).toBe('portable');
      expect(() =>
        addon.multiply(
          'abacus',
          packedMatrix(dtype, [1, 1]),
          new Uint8Array(640),
          values(1, 1),
          values(1, 1),
        ),
      ).toThrow(/no such kernels/);
    },
  );

  it('keep apart what is no number: a row of int8 with one is NaN, and one without a scale is zeros', () => {
    const byColumn = (row: number[]) => {
      const matrix = packedMatrix('int8', [1, row.length]);
      const data = new Uint8Array(storedBytes([1, row.length], 'int8'));
      addon.pack(matrix, data, 0, Float32Array.from(row));
      const x = Float32Array.from({ length: row.length ** 2 }, (_, i) =>
        i % (row.length + 1) === 0 ? 1 : 0,
      );
      const y = new Float32Array(row.length);
      addon.multiply(addon.kernels[0]!, matrix, data, x, y);
      return [...y];
    };
    for (const no of [NaN, Infinity, -Infinity])
      for (const place of [0, 1, 2])
        expect(byColumn([1, -2, 0.5].with(place, no)), String(no)).toEqual([NaN, NaN, NaN]);
    // 127 / 1e-38 is beyond float32.
    expect(byColumn([1e-38, 0, -1e-38])).toEqual([0, 0, 0]);
    expect(byColumn([0, -0, 0])).toEqual([0, 0, 0]);
  });

  const variants: [string, Partial<ModelConfig>][] = [
    ['tied', {}],
    ['untied, norms of heads', { tieEmbeddings: false, queryKeyNorm: true }],
    ['biases, odd sizes', { biases: ['qkv', 'output', 'mlp'], hiddenSize: 45, intermediateSize: 77 }],
  ];
  /** Logits after 11 tokens and after each of the rest, and those of a piece. */
  const logitsOf = async (config: ModelConfig, weights: DecoderWeights): Promise<Float32Array[]> => {
    const backend = NativeBackend.load(found, config, weights, { threads: 1 });
    const tokens = Array.from({ length: 20 }, (_, i) => (7 * i + 3) % config.vocabSize);
    const { logits, rows } = await backend.prefill(tokens.slice(0, 11));
    const block = new KvBlock(kvShape(config), 1, 64);
    block.insert(rows, rows.length);
    const all = [logits];
    for (const token of tokens.slice(11)) {
      block.tokens[0] = token;
      await backend.step(block);
      all.push(backend.logits(block).slice(0, config.vocabSize));
      block.lengths[0]!++;
    }
    const piece = await backend.feed([{ block, slot: 0, tokens }], new Draws(LANES));
    all.push(piece.slice(0, config.vocabSize));
    await backend.dispose();
    return all;
  };
  it.each(dtypes.flatMap((dtype) => variants.map(([name, change]) => [dtype, name, change] as const)))(
    'in %s compute what rounded matrices compute in float32: %s',
    async (dtype, _, change) => {
      const config = { ...smallConfig, ...change };
      const weights = randomWeights(config);
      const packed = { dtype, data: new Uint8Array(packedLayout(config, dtype).bytes) };
      atOnce(packInPieces(addon, config, weights, packed));
      const exact = new Map(
        [...weights].map(([name, { shape, data }]) => [
          name,
          { shape, data: shape.length === 1 ? data : rounded(data, shape[1]!, dtype) },
        ]),
      );
      const expected = await logitsOf(config, flat(config, exact));
      let worst = 0;
      for (const [i, logits] of (await logitsOf(config, packed)).entries())
        for (const [v, logit] of logits.entries())
          worst = Math.max(worst, Math.abs(expected[i]![v]! - logit));
      expect(worst).toBeLessThan(1e-4);
      const unrounded = await logitsOf(config, flat(config, weights));
      expect(Math.abs(unrounded[0]![0]! - expected[0]![0]!)).toBeGreaterThan(1e-4);
    },
  );

  const sampled = async (
    load: (decoder: ReturnType<typeof createDecoder>) => Promise<void>,
    options: Parameters<typeof createDecoder>[0] = {},
  ) => {
    const decoder = createDecoder({ threads: 1, ...options });
    await load(decoder);
    const asked = { session: 's', prefix: [1, 2, 3], continuation: [], stopTokens: [], maxNewTokens: 20 };
    const sampling = { temperature: 1, topK: 0, topP: 1 };
    const { tokens, samplerLogprobs } = await decoder.sample({
      ...asked,
      sampling,
      key: randomKey('packed'),
    });
    await decoder.close();
    return { tokens, samplerLogprobs };
  };

  it.each(dtypes)('have an adapter merged before they are rounded: %s', async (dtype) => {
    const weights = randomWeights(smallConfig);
    const lora = { rank: 2, alpha: 4, rsLora: false, targetModules: ['q_proj', 'v_proj', 'down_proj'] };
    const adapter = { lora, weights: initialAdapter(smallConfig, lora, 1) };
    for (const [name, { data }] of adapter.weights) if (name.includes('lora_B')) data.fill(0.1);
    const merged = mergeAdapter(smallConfig, weights, adapter);
    const apart = await sampled((decoder) => decoder.load('a', smallConfig, weights, adapter, dtype));
    expect(apart).toEqual(
      await sampled((decoder) => decoder.load('m', smallConfig, merged, undefined, dtype)),
    );
    const base = await sampled((decoder) => decoder.load('b', smallConfig, weights, undefined, dtype));
    expect(base.samplerLogprobs).not.toEqual(apart.samplerLogprobs);
  });

  it('are those of the dtype that a decoder is given, one after the other', async () => {
    const weights = randomWeights(smallConfig);
    const alone = [];
    for (const dtype of ['float32', ...dtypes] as const)
      alone.push(await sampled((decoder) => decoder.load('a', smallConfig, weights, undefined, dtype)));
    expect(new Set(alone.map(({ samplerLogprobs }) => samplerLogprobs.join())).size).toBe(3);
    const behind = await sampled(async (decoder) => {
      for (const dtype of [...dtypes, 'float32', 'bfloat16'] as const)
        await decoder.load('a', smallConfig, weights, undefined, dtype);
    });
    expect(behind).toEqual(alone[1]);
  });

  it('are taken by the first sessions of a process, though many threads open theirs at one moment', async () => {
    // One process of three had an error here, where the library was told of the operators by two threads at a time.
    for (let run = 0; run < 6; run++) {
      const script = 'test/support/engine/loads-at-once.ts';
      const { code, stdout, stderr } = await runCommand(process.execPath, ['--import', 'tsx', script]);
      expect([code, stdout.trim()], stderr).toEqual([0, 'loaded']);
    }
  });

  it('are refused by the stock decoder, which says what to do', async () => {
    const weights = randomWeights(smallConfig);
    await expect(
      sampled((decoder) => decoder.load('a', smallConfig, weights, undefined, 'bfloat16'), {
        backend: 'stock',
      }),
    ).rejects.toMatchObject({
      boundary: 'policy',
      type: 'no-dtype',
      message: expect.stringMatching(/Only the native decoder samples in bfloat16.*setup/) as string,
    });
  });
});
