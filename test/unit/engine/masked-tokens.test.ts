import { describe, expect, onTestFinished, test } from 'vitest';
import { randomKey } from '../../../core/random.ts';
import { createDecoderBackend as loadDecoderBackend } from '../../../engine/decoder/load-backend.ts';
import type { DecoderBackendKind } from '../../../engine/decoder/load-backend.ts';
import { createDecoder } from '../../../engine/decoder/decoder.ts';
import { findAddon } from '../../../engine/decoder/native/addon.ts';
import { modelConfigOf } from '../../../engine/hf-model-config.ts';
import { createLocalLearner } from '../../../engine/learner/local-learner.ts';
import type { SamplingMask, TrainBatch } from '../../../engine/learner/contract.ts';
import type { ModelConfig } from '../../../core/model/config.ts';
import { toHfConfig } from '../../../engine/new-model-files.ts';
import { buildDecoderGraph } from '../../../engine/onnx/decoder-graph.ts';
import { idsWithoutToken } from '../../../engine/tokenizer/ids-without-token.ts';
import { flat, randomWeights, smallConfig } from '../../support/engine/random-model.ts';
import { GRPO, settings } from '../../support/engine/tiny.ts';
import { FULL_SIZES, fullSizeJson } from './tokenizer/full-size.ts';

const MASKED: ModelConfig = {
  ...smallConfig,
  maskedTokens: [
    [0, 1],
    [40, 43],
    [90, 97],
  ],
};
const isMasked = (token: number): boolean =>
  MASKED.maskedTokens!.some(([from, to]) => from <= token && token < to);
const prompt = [5, 17, 60, 3];

/** Logits of the plain model after a prompt, and of the masked one. */
async function logitsOf(kind: DecoderBackendKind, config: ModelConfig): Promise<Float32Array> {
  const backend = await loadDecoderBackend(kind, config, flat(config, randomWeights(config)), { threads: 1 });
  onTestFinished(() => backend.dispose());
  return (await backend.prefill(prompt)).logits.slice();
}

describe('the ids that a tokenizer lacks', () => {
  test('are those at the end of a padded embedding, and those in between', () => {
    const json = JSON.parse(fullSizeJson('qwen2.5')) as Parameters<typeof idsWithoutToken>[0];
    expect(idsWithoutToken(json, FULL_SIZES['qwen2.5'].rows)).toEqual([[151_665, 151_936]]);
    const holes = { model: { vocab: { a: 1, b: 3 } }, added_tokens: [{ id: 6 }, { id: 99 }] };
    expect(idsWithoutToken(holes, 8)).toEqual([
      [0, 1],
      [2, 3],
      [4, 6],
      [7, 8],
    ]);
    expect(
      idsWithoutToken(
        {
          model: {
            vocab: [
              ['a', 0],
              ['b', 0],
            ],
          },
        },
        2,
      ),
    ).toEqual([]);
    expect(idsWithoutToken({}, 8)).toEqual([]);
  });

  test('are masked in the configuration of a model, and leave no trace where there are none', () => {
    const config = toHfConfig(smallConfig);
    const vocab = (size: number) =>
      Object.fromEntries(Array.from({ length: size }, (_, id) => [`t${id}`, id]));
    expect(modelConfigOf(config, { model: { vocab: vocab(95) } }).maskedTokens).toEqual([[95, 97]]);
    const whole = modelConfigOf(config, { model: { vocab: vocab(97) } });
    expect(whole).toEqual(smallConfig);
    expect(buildDecoderGraph(whole)).toEqual(buildDecoderGraph(smallConfig));
  });
});

const samplingMasks = (sets: readonly number[][]): SamplingMask => ({
  ids: Int32Array.from(sets.flat()),
  offsets: Int32Array.from([0, ...sets].map((_, i) => sets.slice(0, i).flat().length)),
});

const kinds: DecoderBackendKind[] = 'addon' in findAddon() ? ['native', 'stock'] : ['stock'];

test.each(kinds)(
  'the %s decoder gives masked tokens no probability, and the others the same logits',
  async (kind) => {
    const [plain, masked] = [await logitsOf(kind, smallConfig), await logitsOf(kind, MASKED)];
    for (const [token, logit] of masked.entries()) {
      if (isMasked(token)) expect(logit).toBeLessThan(-1e29);
      else expect(logit).toBe(plain[token]);
    }
  },
);

test.each([
  ['the whole softmax', { temperature: 1, topK: 0, topP: 1 }],
  ['a nucleus', { temperature: 1.5, topK: 0, topP: 0.99 }],
  ['more than there are', { temperature: 2, topK: 96, topP: 1 }],
  ['the seven likeliest', { temperature: 2, topK: 7, topP: 1 }],
  ['a nucleus of the forty likeliest', { temperature: 2, topK: 40, topP: 0.8 }],
  ['the likeliest', { temperature: 0, topK: 0, topP: 1 }],
])(
  'masked tokens are never drawn from %s, and the learner gives what is drawn the same log-probs',
  async (_, sampling) => {
    // Masked tokens would be the likeliest by far.
    const weights = randomWeights({ ...MASKED, tieEmbeddings: false });
    const head = weights.get('lm_head.weight')!;
    const d = MASKED.hiddenSize;
    for (let token = 0; token < MASKED.vocabSize; token++) {
      if (!isMasked(token)) continue;
      for (let i = 0; i < d; i++) head.data[token * d + i]! *= 4;
    }
    const config: ModelConfig = { ...MASKED, tieEmbeddings: false };
    const decoder = createDecoder({ threads: 1 });
    onTestFinished(() => decoder.close());
    await decoder.load('masked', config, weights);
    const drawn = await decoder.sample({
      session: 'one',
      prefix: prompt,
      continuation: [],
      maxNewTokens: 80,
      stopTokens: [],
      sampling,
      key: randomKey('masked'),
    });
    expect(drawn.tokens.filter(isMasked)).toEqual([]);
    expect((drawn.kept ?? []).flat().filter(isMasked)).toEqual([]);
    if (sampling.temperature === 0) return;

    const learner = await createLocalLearner({ backend: 'cpu', mode: 'traced' });
    onTestFinished(() => learner.close());
    const zeros = prompt.map(() => 0);
    const batch: TrainBatch = {
      tokens: Int32Array.from([...prompt, ...drawn.tokens]),
      offsets: Int32Array.of(0, prompt.length + drawn.tokens.length),
      mask: Float32Array.from([...zeros, ...drawn.tokens.map(() => 1)]),
      streams: {
        advantages: Float32Array.from([...zeros, ...drawn.tokens.map(() => 1)]),
        samplerLogprobs: Float32Array.from([...zeros, ...drawn.samplerLogprobs]),
      },
      sequences: {},
      updates: [Int32Array.of(0)],
      ...(drawn.kept && { kept: samplingMasks([...prompt.map(() => []), ...drawn.kept]) }),
    };
    const state = { config, weights, firstMoments: new Map(), secondMoments: new Map(), updates: 0 };
    const objective = { ...GRPO, temperature: sampling.temperature, topK: sampling.topK };
    const { metrics, state: after } = await learner.step(state, batch, settings(objective));
    expect(metrics.logprobGapMax).toBeLessThan(5e-5);
    expect(metrics.logprobGapMean).toBeLessThan(1e-5);
    expect(metrics.entropy).toBeGreaterThan(0);
    expect(metrics.entropy).toBeLessThan(Math.log(MASKED.vocabSize - 11));
    // A row that is masked, or that no token was drawn among, gets no gradient.
    const among = new Set(drawn.kept?.flat());
    const isOut = (token: number) => isMasked(token) || (among.size > 0 && !among.has(token));
    const moved = after.weights.get('lm_head.weight')!.data;
    for (let token = 0; token < MASKED.vocabSize; token++) {
      const row = (data: Float32Array) => [...data.subarray(token * d, (token + 1) * d)];
      if (isOut(token)) expect(row(moved)).toEqual(row(head.data));
      else expect(row(moved)).not.toEqual(row(head.data));
    }
  },
);

test('a batch with a masked token is refused by its place', async () => {
  const learner = await createLocalLearner({ backend: 'cpu', mode: 'eager' });
  onTestFinished(() => learner.close());
  const batch: TrainBatch = {
    tokens: Int32Array.of(5, 6, 41),
    offsets: Int32Array.of(0, 3),
    mask: Float32Array.of(0, 1, 1),
    streams: { advantages: Float32Array.of(0, 1, 1) },
    sequences: {},
    updates: [Int32Array.of(0)],
  };
  const weights = randomWeights(MASKED);
  const state = { config: MASKED, weights, firstMoments: new Map(), secondMoments: new Map(), updates: 0 };
  await expect(learner.step(state, batch, settings(GRPO))).rejects.toThrow(
    'tokens[2] is 41, which the tokenizer of this model lacks',
  );
});
