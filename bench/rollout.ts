import { InferenceSession, Tensor } from 'onnxruntime-node';
import { MODEL_DEFAULTS } from '../core/schema/model.ts';
import { normal, randomKey, RandomStream, uniform, type RandomKey } from '../core/random.ts';
import { createDecoder } from '../engine/decoder/decoder.ts';
import { Sampler } from '../engine/decoder/sampler.ts';
import { weightShapes, type ModelConfig, type Weights } from '../core/model/config.ts';
import { buildDecoderGraph, WEIGHTS_FILE } from '../engine/onnx/decoder-graph.ts';
import type { LocalPolicy } from '../engine/policy.ts';
import type { BenchOptions } from './bench.ts';
import { benchRow, type BenchRow } from './bench-row.ts';

const EPISODES = 128;
const QUICK_EPISODES = 32;
const GROUP = 16;
const PROMPT = 25;
const RUNS = 7;
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

function randomWeights(): Weights {
  const key = randomKey('weights');
  let draws = 0;
  return new Map(
    weightShapes(config).map(([name, shape]) => {
      const length = shape.reduce((a, b) => a * b, 1);
      const value = () => (shape.length === 1 ? 1 : 0.08 * normal(key, draws++));
      return [name, { shape, data: Float32Array.from({ length }, value) }];
    }),
  );
}

async function continuously(policy: LocalPolicy, all: readonly Episode[], run: number): Promise<void> {
  await Promise.all(
    all.map(async ({ prefix, newTokens, key }, index) => {
      const session = `${run}/${index}`;
      await policy.sample({
        session,
        prefix,
        continuation: [],
        maxNewTokens: newTokens,
        stopTokens: [],
        sampling,
        key,
      });
      policy.release(session);
    }),
  );
}

/** Group by group: the prompt is prefilled for each sample, and the group goes on until its longest episode ends. */
async function groupByGroup(session: InferenceSession, all: readonly Episode[]): Promise<void> {
  const sampler = new Sampler(config.vocabSize);
  for (let start = 0; start < all.length; start += GROUP) {
    await decodeGroup(session, sampler, all.slice(start, start + GROUP));
  }
}

async function decodeGroup(
  session: InferenceSession,
  sampler: Sampler,
  group: readonly Episode[],
): Promise<void> {
  const { keyValueHeads: K, headSize: D, vocabSize: V } = config;
  const B = group.length;
  const parts = Array.from({ length: config.layers }, (_, layer) => [
    `${layer}.key`,
    `${layer}.value`,
  ]).flat();
  const outputs = ['logits', ...parts.map((part) => `present.${part}`)];
  const caches = new Map<string, Tensor>(
    parts.map((part) => [part, new Tensor('float32', new Float32Array(0), [B, K, 0, D])]),
  );
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
 * group by group with plain onnxruntime-node and a growing cache, on as many cores.
 */
export async function* rolloutBench(options: BenchOptions): AsyncGenerator<BenchRow> {
  const { quick, say, signal } = options;
  const runs = options.runs ?? (quick ? 2 : RUNS);
  const count = quick ? QUICK_EPISODES : EPISODES;
  const weights = randomWeights();
  const policy = createDecoder({ threads: 2 });
  const flat = Float32Array.from(weightShapes(config).flatMap(([name]) => [...weights.get(name)!.data]));
  const session = await InferenceSession.create(buildDecoderGraph(config), {
    intraOpNumThreads: 2,
    externalData: [{ path: WEIGHTS_FILE, data: new Uint8Array(flat.buffer) }],
  });
  try {
    await policy.load('bench', config, weights);
    for (const [name, shortest, longest] of [
      ['60 new tokens each', 60, 60],
      ['20 to 100 new tokens', 20, 100],
    ] as const) {
      const all = episodes(count, shortest, longest);
      const tokens = all.reduce((sum, { newTokens }) => sum + newTokens, 0);
      const speed = async (work: () => Promise<void>) => {
        const start = performance.now();
        await work();
        return (1000 * tokens) / (performance.now() - start);
      };
      const ours: number[] = [];
      const anchor: number[] = [];
      // The first run of each warms up and does not count.
      for (let run = 0; run <= runs; run++) {
        signal.throwIfAborted();
        const mine = await speed(() => continuously(policy, all, run));
        const other = await speed(() => groupByGroup(session, all));
        if (run > 0) {
          ours.push(mine);
          anchor.push(other);
          say(`  ${name}, run ${run} of ${runs}: ${Math.round(mine)} vs ${Math.round(other)} tokens/s`);
        }
      }
      yield benchRow({
        bench: 'rollout',
        case: `${count} episodes, ${name}, continuous batch vs group by group`,
        unit: 'tokens/s',
        better: 'more',
        ours,
        anchor,
      });
    }
  } finally {
    await session.release();
    await policy.close();
  }
}
