import type { Json } from '../../core/json/json.ts';
import type { ModelConfig } from '../../core/model/config.ts';
import { parameterCount } from '../../core/model/config.ts';
import { benchRowsOf } from '../bench.ts';
import type { Bench, BenchOptions, BenchRow } from '../bench.ts';
import { Child, withChildren } from '../child.ts';
import { MODELS, ourEngine, THREADS, withModel } from './engines.ts';
import type { ModelSize } from './engines.ts';
import { batchesOf, benchPrompt, SHAPES, TOP_P } from './speed.ts';

/** What the processor reaches at best, each per second, in float32. */
interface Peak {
  flops: number;
  /** Reading as much as a model's weights, or as its weights, gradients and moments. */
  bytes: Record<'weights' | 'training', number>;
}

/** What a piece of work cannot do without. Whatever comes on top of it is what could be saved at most. */
interface Needed {
  flops: number;
  /** Of memory that is read or written. */
  bytes: number;
}

/** Weights that a token is multiplied by: an embedding is looked up. */
const multiplied = (config: ModelConfig): number =>
  parameterCount(config) - (config.tieEmbeddings ? 0 : config.vocabSize * config.hiddenSize);

/** Operations of tokens that follow `before` others: a product with each weight, and attention to all that came before. */
function forward(config: ModelConfig, tokens: number, before = 0): number {
  const seen = tokens * before + (tokens * (tokens + 1)) / 2;
  return 2 * multiplied(config) * tokens + 4 * config.layers * config.attentionHeads * config.headSize * seen;
}

/** Seconds below which it cannot be done, and what holds it there. */
function limit(parts: readonly Needed[], flops: number, bytes: number): { seconds: number; by: string } {
  const compute = (part: Needed) => part.flops / flops;
  const memory = (part: Needed) => part.bytes / bytes;
  const seconds = parts.reduce((sum, part) => sum + Math.max(compute(part), memory(part)), 0);
  const bound = parts.reduce((sum, part) => sum + (memory(part) > compute(part) ? memory(part) : 0), 0);
  return { seconds, by: bound > seconds / 2 ? 'memory' : 'FLOPs' };
}

/** Each of `newTokens` steps of a batch reads all weights once, and what its sequences have kept; so does each prefill. */
function decoding(config: ModelConfig, batch: number, prompt: number, newTokens: number): Needed[] {
  const weights = 4 * multiplied(config);
  const kept = 8 * config.layers * config.keyValueHeads * config.headSize;
  return [
    { flops: batch * forward(config, prompt), bytes: weights },
    // The last token that is sampled goes through no model.
    ...Array.from({ length: newTokens - 1 }, (_, i) => ({
      flops: batch * forward(config, 1, prompt + i),
      bytes: weights + batch * kept * (prompt + i),
    })),
  ];
}

/** Forward and backward take three times forward; Adam reads weight, gradient and moments, and writes all but the gradient. */
function training(config: ModelConfig, rows: number, length: number): Needed[] {
  return [
    { flops: 3 * rows * forward(config, length), bytes: 0 },
    { flops: 0, bytes: 7 * 4 * parameterCount(config) },
  ];
}

async function peakOf(config: ModelConfig): Promise<Peak> {
  const env = { ...process.env, TF_NUM_INTRAOP_THREADS: String(THREADS) };
  return withChildren(async (keep) => {
    const child = keep(Child.own('engine/peak.ts', { env }));
    const ask = async (op: string, request: { [field: string]: Json } = {}): Promise<number> =>
      (await child.call(op, request))['perSecond'] as number;
    const size = 4 * parameterCount(config);
    const read = (bytes: number) => ask('read', { threads: THREADS, size: bytes });
    return {
      flops: await ask('flops'),
      bytes: { weights: await read(size), training: await read(4 * size) },
    };
  });
}

/** Seconds of the quickest run, as peaks are of the quickest as well; the first does not count. */
async function quickest(engine: Child, op: string, request: { [field: string]: Json }, runs: number) {
  const seconds: number[] = [];
  for (let run = 0; run <= runs; run++) seconds.push((await engine.call(op, request)).seconds);
  return Math.min(...seconds.slice(1));
}

/**
 * How far each part is from what the processor allows: the time that its operations take at the speed of a large product
 * of matrices in libtensorflow, or its memory at the speed with which as much is read, whichever is longer (Williams et al. 2009,
 * "Roofline"). Ratios are the part of the limit that is reached.
 */
export const rooflineBench: Bench = async function* (options) {
  for (const size of ['1M', '30M'] as const) yield* await rowsOf(size, options);
};

async function rowsOf(size: ModelSize, options: BenchOptions): Promise<BenchRow[]> {
  const config = MODELS[size];
  const runs = options.runs ?? (options.quick ? 1 : 5);
  const peak = await peakOf(config);
  const giga = (value: number) => (value / 1e9).toFixed(0);
  options.say(
    `${size}: ${giga(peak.flops)} GFLOP/s, ${giga(peak.bytes.weights)} GB/s of weights, ` +
      `${giga(peak.bytes.training)} of all that training holds`,
  );
  const rows: BenchRow[] = [];
  const add = (name: string, amount: number, seconds: number, bound: ReturnType<typeof limit>) =>
    rows.push(
      benchRowsOf('engine:roofline')(
        `${size} parameters, ${name}, against the limit of ${bound.by}`,
        'tokens/s',
        'more',
        [amount / seconds],
        amount / bound.seconds,
      ),
    );
  await withModel(size, options.say, async ({ open }) => {
    const ours = await open(ourEngine(), 'loadDecoder');
    for (const batch of [1, 16, 64]) {
      const [prompt, newTokens] = [16, options.quick ? 32 : 128];
      const prompts = Array.from({ length: batch }, (_, i) =>
        benchPrompt('decode', i, prompt, config.vocabSize),
      );
      const seconds = await quickest(ours, 'decode', { prompts, new_tokens: newTokens, top_p: TOP_P }, runs);
      const needed = decoding(config, batch, prompt, newTokens);
      add(
        `decode, batch ${batch}, ${prompt} + ${newTokens} tokens`,
        batch * newTokens,
        seconds,
        limit(needed, peak.flops, peak.bytes.weights),
      );
    }
  });
  const shape = SHAPES.find((one) => one.size === size)!;
  const updates = options.quick ? 2 : shape.updates;
  const tokens = batchesOf(`learner ${size}`, updates, shape.rows, shape.length, config.vocabSize);
  await withModel(size, options.say, async ({ open }) => {
    const ours = await open(ourEngine(), 'loadLearner', { precision: 'float32' });
    const seconds = await quickest(ours, 'steps', { tokens }, runs);
    const needed = tokens.flatMap(() => training(config, shape.rows, shape.length));
    add(
      `update, ${shape.rows} × ${shape.length} tokens`,
      updates * shape.rows * shape.length,
      seconds,
      limit(needed, peak.flops, peak.bytes.training),
    );
  });
  return rows;
}
