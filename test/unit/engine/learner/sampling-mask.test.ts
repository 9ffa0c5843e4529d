import type { Scalar, Tensor2D } from '@tensorflow/tfjs';
import { describe, expect, onTestFinished, test } from 'vitest';
import { normal, randomKey, RandomStream } from '../../../../core/random.ts';
import { createDecoder } from '../../../../engine/decoder/decoder.ts';
import { loadTensorflowBackend } from '../../../../engine/learner/tensorflow/backend.ts';
import type { UpdatePlan } from '../../../../core/requests/batch.ts';
import type { SamplingMask, TrainBatch } from '../../../../engine/learner/contract.ts';
import { createLocalLearner } from '../../../../engine/learner/local-learner.ts';
import { tokenLogprobs } from '../../../../engine/learner/model/token-logprobs.ts';
import type { ModelConfig } from '../../../../core/model/config.ts';
import { MASKED } from '../../../../engine/token-mask.ts';
import { randomWeights, smallConfig } from '../../../support/engine/random-model.ts';
import {
  bytes,
  freshState,
  GRPO,
  inUpdates,
  randomBatch,
  settings,
  TINY,
} from '../../../support/engine/tiny.ts';

const [N, d, V] = [6, 5, 23];
/** Ids that the model's tokenizer lacks. */
const MASKED_IDS = [1, 20];

/** Ids of each row, ascending; the third row keeps all. */
function someSets(targets: readonly number[], most: number): number[][] {
  const random = new RandomStream('kept sets');
  return targets.map((target, i) => {
    if (i === 2) return [];
    const set = new Set([target]);
    while (set.size < 1 + (i % most)) {
      const id = random.int(0, V - 1);
      if (!MASKED_IDS.includes(id)) set.add(id);
    }
    return [...set].toSorted((a, b) => a - b);
  });
}

const samplingMasks = (sets: readonly number[][]): SamplingMask => {
  const offsets = [0];
  for (const set of sets) offsets.push(offsets.at(-1)! + set.length);
  return { ids: Int32Array.from(sets.flat()), offsets: Int32Array.from(offsets) };
};

/** Σ w log p(target | kept) in float64, with p and entropy of each row. */
function inFloat64(
  hidden: Float64Array,
  head: Float64Array,
  targets: readonly number[],
  sets: readonly number[][],
) {
  return targets.map((target, n) => {
    const all = Array.from({ length: V }, (_, v) => v).filter((v) => !MASKED_IDS.includes(v));
    const among = sets[n]!.length > 0 ? sets[n]! : all;
    const logit = (v: number) =>
      Array.from({ length: d }, (_, i) => hidden[n * d + i]! * head[v * d + i]!).reduce((a, b) => a + b);
    const most = Math.max(...among.map(logit));
    const total = among.reduce((sum, v) => sum + Math.exp(logit(v) - most), 0);
    const logp = (v: number) => logit(v) - most - Math.log(total);
    const p = new Float64Array(V);
    for (const v of among) p[v] = Math.exp(logp(v));
    return { logprob: logp(target), p, entropy: among.reduce((sum, v) => sum - p[v]! * logp(v), 0) };
  });
}

test.each([
  ['log-probs', 0],
  ['log-probs and entropy', 0.6],
])('gradients of %s over kept ids are those of the renormalized softmax in float64', async (_, bonus) => {
  const backend = await loadTensorflowBackend('cpu');
  const { tf } = backend;
  const key = randomKey('kept');
  const values = (count: number, from: number) =>
    Float32Array.from({ length: count }, (_, i) => 1.5 * normal(key, from + i));
  const [hidden, head] = [values(N * d, 0), values(V * d, 1000)];
  const targets = [3, 0, 22, 7, 7, 11];
  const weights = Float32Array.from([1, -0.5, 2, 0.25, -1, 1]);
  const most = 4;
  const sets = someSets(targets, most);
  const ids = sets.flatMap((set) => Array.from({ length: most }, (_, k) => set[k] ?? set[0] ?? -1));
  const expected = inFloat64(Float64Array.from(hidden), Float64Array.from(head), targets, sets);

  const kept = tf.tensor2d(ids, [N, most], 'int32');
  const mask = Float32Array.from({ length: V }, (_, v) => (MASKED_IDS.includes(v) ? MASKED : 0));
  const run = (h: Tensor2D, w: Tensor2D) =>
    tokenLogprobs(backend, h, w, tf.tensor1d(targets, 'int32'), { kept, mask, entropyGradient: bonus !== 0 });
  const tensors = [tf.tensor2d(hidden, [N, d]), tf.tensor2d(head, [V, d])] as const;
  const { logprobs, entropy } = run(...tensors);
  const [ofHidden, ofHead] = tf.grads((h, w) => {
    const { logprobs, entropy } = run(h as Tensor2D, w as Tensor2D);
    const sum = tf.sum<Scalar>(tf.mul(logprobs, tf.tensor1d(weights)));
    return bonus === 0 ? sum : tf.add(sum, tf.mul(tf.sum(entropy), bonus));
  })([...tensors]);
  // Of the weighted sum by the logits: w (onehot − p) − bonus · p (log p + H).
  const slope = (n: number, v: number): number => {
    const { p, entropy } = expected[n]!;
    const ofEntropy = p[v]! > 0 ? -p[v]! * (Math.log(p[v]!) + entropy) : 0;
    return weights[n]! * (Number(v === targets[n]) - p[v]!) + bonus * ofEntropy;
  };
  const [gotHidden, gotHead] = [ofHidden!.dataSync(), ofHead!.dataSync()];
  expected.forEach((row, n) => {
    expect(logprobs.dataSync()[n]).toBeCloseTo(row.logprob, 5);
    expect(entropy.dataSync()[n]).toBeCloseTo(row.entropy, 4);
    for (let i = 0; i < d; i++) {
      let pull = 0;
      for (let v = 0; v < V; v++) pull += slope(n, v) * head[v * d + i]!;
      expect(gotHidden[n * d + i]).toBeCloseTo(pull, 4);
    }
  });
  for (let v = 0; v < V; v++) {
    for (let i = 0; i < d; i++) {
      const sum = expected.reduce((at, _, n) => at + slope(n, v) * hidden[n * d + i]!, 0);
      expect(gotHead[v * d + i]).toBeCloseTo(sum, 4);
    }
  }
});

describe('a step on what was sampled with a cut', () => {
  const config: ModelConfig = { ...smallConfig, tieEmbeddings: false };
  const prompt = [5, 17, 60, 3];

  test.each([
    ['top-k', { temperature: 1, topK: 5, topP: 1 }],
    ['top-p among top-k', { temperature: 0.8, topK: 40, topP: 0.7 }],
  ])('by %s speaks of the distribution that was sampled from, at every update', async (_, sampling) => {
    const weights = randomWeights(config);
    const decoder = createDecoder({ threads: 1 });
    onTestFinished(() => decoder.close());
    await decoder.load('cut', config, weights);
    const episodes = await Promise.all(
      [0, 1, 2, 3].map((sample) =>
        decoder.sample({
          session: `s${sample}`,
          prefix: prompt,
          continuation: [],
          maxNewTokens: 30,
          stopTokens: [],
          sampling,
          key: randomKey('cut', sample),
        }),
      ),
    );
    const none = prompt.map((): number[] => []);
    const zeros = prompt.map(() => 0);
    const batch: TrainBatch = {
      tokens: Int32Array.from(episodes.flatMap(({ tokens }) => [...prompt, ...tokens])),
      offsets: Int32Array.from([0, 1, 2, 3, 4].map((i) => i * (prompt.length + 30))),
      mask: Float32Array.from(episodes.flatMap(({ tokens }) => [...zeros, ...tokens.map(() => 1)])),
      streams: {
        advantages: Float32Array.from(
          episodes.flatMap(({ tokens }, i) => [...zeros, ...tokens.map(() => (i % 2 ? -1 : 1))]),
        ),
        samplerLogprobs: Float32Array.from(
          episodes.flatMap(({ samplerLogprobs }) => [...zeros, ...samplerLogprobs]),
        ),
      },
      sequences: {},
      updates: [Int32Array.of(0, 1, 2, 3)],
      kept: samplingMasks(episodes.flatMap(({ kept }) => [...none, ...kept!])),
    };
    const learner = await createLocalLearner({ backend: 'cpu', mode: 'traced' });
    onTestFinished(() => learner.close());
    const objective = { ...GRPO, temperature: sampling.temperature, topK: sampling.topK, beta: 0.1 };
    const step = (updates: Partial<UpdatePlan> = {}) =>
      learner.step(
        freshState(config, weights),
        inUpdates(batch, updates),
        settings({ ...objective, importanceCap: 2 }),
        { reference: weights },
      );
    const { metrics } = await step();
    expect(metrics.logprobGapMax).toBeLessThan(5e-5);
    expect(metrics.logprobGapMean).toBeLessThan(5e-6);
    expect(metrics.entropy).toBeLessThan(Math.log(sampling.topK));
    // The reference is the same policy, over the same ids.
    expect(metrics.kl).toBeCloseTo(0, 6);
    const several = await step({ minibatch: 2, epochs: 2 });
    expect(several.metrics).toMatchObject({ updates: 4 });
    expect(several.metrics.logprobGapMax).toBeLessThan(5e-5);
    // Over the whole softmax it would be another one by far.
    const { kept: __, ...uncut } = batch;
    const whole = await learner.step(
      freshState(config, weights),
      uncut,
      settings({ ...objective, topK: 0 }),
      { reference: weights },
    );
    expect(whole.metrics.logprobGapMean).toBeGreaterThan(0.1);
  });
});

test('where nothing was cut a step is that of the whole softmax, to the bit', async () => {
  const learner = await createLocalLearner({ backend: 'cpu', mode: 'traced' });
  onTestFinished(() => learner.close());
  const batch = randomBatch(4);
  const sets = samplingMasks(Array.from(batch.tokens, () => []));
  const plain = await learner.step(freshState(), batch, settings(GRPO));
  const kept = await learner.step(freshState(), { ...batch, kept: sets }, settings({ ...GRPO, topK: 3 }));
  expect(bytes(kept.state.weights).equals(bytes(plain.state.weights))).toBe(true);
  expect(kept.metrics).toMatchObject({ loss: plain.metrics.loss, entropy: plain.metrics.entropy });
});

test('a set that its token is not in, that is too large or that is not the model’s is refused by its place', async () => {
  const learner = await createLocalLearner({ backend: 'cpu', mode: 'eager' });
  onTestFinished(() => learner.close());
  const batch = randomBatch(1);
  const at = batch.mask.indexOf(1);
  const token = batch.tokens[at]!;
  const other = (token + 1) % TINY.vocabSize;
  const tooMany = Array.from({ length: 4 }, (_, i) => i + Math.max(0, token - 3));
  for (const set of [[other], tooMany, [token, TINY.vocabSize].toSorted((a, b) => a - b)]) {
    const sets = Array.from(batch.tokens, (_, i) => (i === at ? set : []));
    await expect(
      learner.step(freshState(), { ...batch, kept: samplingMasks(sets) }, settings({ ...GRPO, topK: 3 })),
    ).rejects.toThrow(`tokens[${at}] is ${token}, sampled among`);
  }
});
