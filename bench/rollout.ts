import { InferenceSession, Tensor } from 'onnxruntime-node';
import { parameterCount } from '../core/model/config.ts';
import type { ModelConfig } from '../core/model/config.ts';
import { randomKey, RandomStream, uniform } from '../core/random.ts';
import type { RandomKey } from '../core/random.ts';
import { MODEL_DEFAULTS } from '../core/schema/model.ts';
import { createDecoder } from '../engine/decoder/decoder.ts';
import { Sampler } from '../engine/decoder/sampler.ts';
import { buildDecoderGraph, WEIGHTS_FILE } from '../engine/onnx/decoder-graph.ts';
import type { LocalPolicy } from '../engine/policy.ts';
import { flat, randomWeights } from '../test/support/engine/random-model.ts';
import { interleavedRuns, benchRowsOf } from './bench.ts';
import type { Bench } from './bench.ts';
import { MODELS } from './engine/engines.ts';
import { drawnBy, meanGap, ROUNDED, tokensPerSecond } from './rounded.ts';

const [EPISODES, QUICK_EPISODES, GROUP, PROMPT] = [128, 32, 16, 25];
const sampling = { temperature: 1, topK: 0, topP: 1 };

/** 0.85 M parameters. */
const config: ModelConfig = {
  ...MODEL_DEFAULTS,
  maxPositions: 512,
  rmsNormEpsilon: 1e-5,
  ropeTheta: 10000,
  tieEmbeddings: true,
};

interface Episode {
  prefix: number[];
  newTokens: number;
  key: RandomKey;
}

function episodes(count: number, shortest: number, longest: number): Episode[] {
  return Array.from({ length: count }, (_, index) => {
    const prompt = new RandomStream('prompt', Math.floor(index / GROUP));
    const prefix = Array.from({ length: PROMPT }, () => prompt.int(0, config.vocabSize - 1));
    const newTokens = new RandomStream('length', index).int(shortest, longest);
    return { prefix, newTokens, key: randomKey('episode', index) };
  });
}

async function continuously(policy: LocalPolicy, all: readonly Episode[], run: number): Promise<void> {
  await Promise.all(
    all.map(async ({ prefix, newTokens: maxNewTokens, key }, index) => {
      const session = `${run}/${index}`;
      const asked = { session, prefix, continuation: [], maxNewTokens, stopTokens: [], sampling, key };
      await policy.sample(asked);
      policy.release(session);
    }),
  );
}

/** The prompt is prefilled for each sample, and the group goes on until its longest episode ends. */
async function decodeGroup(
  session: InferenceSession,
  sampler: Sampler,
  group: readonly Episode[],
): Promise<void> {
  const { keyValueHeads: K, headSize: D, vocabSize: V, layers } = config;
  const B = group.length;
  const parts = Array.from({ length: layers }, (_, layer) => [`${layer}.key`, `${layer}.value`]).flat();
  const outputs = ['logits', ...parts.map((part) => `present.${part}`)];
  const nothing = (): Tensor => new Tensor('float32', new Float32Array(0), [B, K, 0, D]);
  const caches = new Map<string, Tensor>(parts.map((part) => [part, nothing()]));
  let ids = Int32Array.from(group.flatMap(({ prefix }) => prefix));
  let length = 0;
  const steps = Math.max(...group.map(({ newTokens }) => newTokens));
  for (let step = 0; step < steps; step++) {
    const fed = ids.length / B;
    length += fed;
    const feeds: Record<string, Tensor> = {
      input_ids: new Tensor('int32', ids, [B, fed]),
      seqlens_k: new Tensor('int32', new Int32Array(B).fill(length - 1), [B]),
      total_sequence_length: new Tensor('int32', Int32Array.of(length), [1]),
      row: new Tensor('int64', new BigInt64Array(B * K).fill(BigInt(length - 1)), [B, K, 1]),
    };
    for (const [part, cache] of caches) feeds[`past.${part}`] = cache;
    const results = await session.run(feeds, outputs);
    for (const part of parts) caches.set(part, results[`present.${part}`]!);
    const logits = results['logits']!.data as Float32Array;
    ids = Int32Array.from(group, ({ newTokens, key }, i) =>
      step < newTokens ? sampler.draw(logits, i * V, sampling, uniform(key, step)).token : 0,
    );
  }
}

/**
 * Sampled tokens per second: a continuous batch of 128 episodes in groups of 16 against the same episodes decoded
 * group by group with plain onnxruntime-node and a growing cache, on as many cores. And a decoder of 30 M parameters whose
 * weights are rounded against one of float32, with how far its log-probs are from those.
 */
export const rolloutBench: Bench = async function* (options) {
  yield* continuousBatch(options);
  yield* roundedWeights(options);
};

const roundedWeights: Bench = async function* (options) {
  const runs = options.runs ?? (options.quick ? 2 : 7);
  const model = options.quick ? config : MODELS['30M'];
  const tokens = options.quick ? 16 : 64;
  const weights = randomWeights(model);
  const exact = createDecoder({ threads: 2 });
  const rounded = createDecoder({ threads: 2 });
  try {
    await exact.load('float32', model, weights);
    for (const dtype of ROUNDED) {
      await rounded.load(dtype, model, weights, undefined, dtype);
      for (const batch of [1, 8, 64]) {
        const speed = (policy: LocalPolicy) => () => tokensPerSecond(policy, model, { batch, tokens });
        const { ours, anchor } = await interleavedRuns(
          `${dtype}, batch ${batch}`,
          { ours: speed(rounded), anchor: speed(exact) },
          (speed) => `${Math.round(speed)} tokens/s`,
          { ...options, runs },
        );
        const what = `${(parameterCount(model) / 1e6).toFixed(0)} M parameters, batch ${batch}, weights in ${dtype} vs float32`;
        yield benchRowsOf('rollout')(what, 'tokens/s', 'more', ours, anchor);
      }
      const gap = await meanGap(exact, model, await drawnBy(rounded, model, 4 * tokens));
      yield benchRowsOf('rollout')(`mean gap of log-probs, weights in ${dtype}`, 'nats', 'less', [gap]);
    }
  } finally {
    await exact.close();
    await rounded.close();
  }
};

const continuousBatch: Bench = async function* (options) {
  const runs = options.runs ?? (options.quick ? 2 : 7);
  const count = options.quick ? QUICK_EPISODES : EPISODES;
  const weights = randomWeights(config);
  const policy = createDecoder({ threads: 2 });
  const session = await InferenceSession.create(buildDecoderGraph(config), {
    intraOpNumThreads: 2,
    externalData: [{ path: WEIGHTS_FILE, data: new Uint8Array(flat(config, weights).buffer) }],
  });
  try {
    await policy.load('bench', config, weights);
    for (const [name, shortest, longest] of [
      ['60 new tokens each', 60, 60],
      ['20 to 100 new tokens', 20, 100],
    ] as const) {
      const all = episodes(count, shortest, longest);
      const tokens = all.reduce((sum, { newTokens }) => sum + newTokens, 0);
      const speed = async (work: () => Promise<void>): Promise<number> => {
        const start = performance.now();
        await work();
        return (1000 * tokens) / (performance.now() - start);
      };
      const groupByGroup = async (): Promise<void> => {
        const sampler = new Sampler(config.vocabSize);
        for (let start = 0; start < count; start += GROUP)
          await decodeGroup(session, sampler, all.slice(start, start + GROUP));
      };
      const { ours, anchor } = await interleavedRuns(
        name,
        { ours: (run) => speed(() => continuously(policy, all, run)), anchor: () => speed(groupByGroup) },
        (tokensPerSecond) => `${Math.round(tokensPerSecond)} tokens/s`,
        { ...options, runs },
      );
      const what = `${count} episodes, ${name}, continuous batch vs group by group`;
      yield benchRowsOf('rollout')(what, 'tokens/s', 'more', ours, anchor);
    }
  } finally {
    await session.release();
    await policy.close();
  }
};
