import path from 'node:path';
import type { Json } from '../../core/json/json.ts';
import { RandomStream } from '../../core/random.ts';
import type { Bench, BenchRow } from '../bench.ts';
import type { Child } from '../child.ts';
import { anchor, compareEngines, ourEngine, withModel } from './engines.ts';

const RUNS = 5;
export const TOP_P = 0.95;

/** Random token ids. */
export const benchPrompt = (name: string, index: number, length: number, vocabSize: number): number[] => {
  const random = new RandomStream(name, index);
  return Array.from({ length }, () => random.int(0, vocabSize - 1));
};

/** Random token ids [updates, rows, length]. */
export function batchesOf(name: string, updates: number, rows: number, length: number, vocabSize: number) {
  const random = new RandomStream(name);
  return Array.from({ length: updates }, () =>
    Array.from({ length: rows }, () => Array.from({ length }, () => random.int(0, vocabSize - 1))),
  );
}

interface Decoding {
  name: string;
  work: readonly [op: string, request: { [field: string]: Json }];
  /** Sampled tokens. */
  amount: number;
}

/** All decoders have the same weights, and continue a prompt alike before anything is timed. */
const decoding = (
  bench: string,
  [llamaName, transformersName]: readonly [string, string],
  casesOf: (vocabSize: number, quick: boolean) => readonly Decoding[],
): Bench =>
  async function* (options) {
    const runs = options.runs ?? (options.quick ? 1 : RUNS);
    for (const size of ['1M', '30M'] as const) {
      yield* await withModel(size, options.say, async ({ config, open }) => {
        const ours = await open(ourEngine(), 'loadDecoder');
        const anchors = {
          [llamaName]: await open(await anchor('llama_cpp_decode', options.say)),
          [transformersName]: await open(await anchor('hf_generate', options.say, { avx512: true })),
        };
        await agree({ ours, ...anchors }, benchPrompt('agree', 0, 16, config.vocabSize));
        const rows: BenchRow[] = [];
        for (const { name, work, amount } of casesOf(config.vocabSize, options.quick)) {
          const what = { bench, name: `${size} parameters, ${name}`, amount };
          rows.push(...(await compareEngines(what, work, ours, anchors, { ...options, runs })));
        }
        return rows;
      });
    }
  };

/** Throws Error when an engine continues greedily in another way: then one of them runs another model. */
export async function agree(engines: Readonly<Record<string, Child>>, prompt: number[]): Promise<void> {
  const lines: string[] = [];
  const printed = new Set<string>();
  for (const [name, engine] of Object.entries(engines)) {
    const { tokens } = await engine.call('greedy', { prompt, new_tokens: 24 });
    printed.add(String(tokens));
    lines.push(`${name}: ${String(tokens)}`);
  }
  if (printed.size > 1) throw new Error(`the engines do not continue alike:\n${lines.join('\n')}`);
}

/** Prompts of 16 tokens and 128 new ones, sampled with top-p. */
export const decodeBench = decoding(
  'engine:decode',
  ['llama.cpp f32', 'HF generate, AVX-512'],
  (vocabSize, quick) =>
    [1, 16, 64].map((batch) => {
      const newTokens = quick ? 32 : 128;
      const prompts = Array.from({ length: batch }, (_, i) => benchPrompt('decode', i, 16, vocabSize));
      return {
        name: `batch ${batch}, 16 + ${newTokens} tokens, top-p ${TOP_P}`,
        work: ['decode', { prompts, new_tokens: newTokens, top_p: TOP_P }],
        amount: batch * newTokens,
      };
    }),
);

/** A group of 16 with a shared prompt of 64 tokens: 4 turns of 32 sampled tokens, each followed by a result of 16. */
export const turnsBench = decoding(
  'engine:turns',
  ['llama.cpp f32 that keeps its caches', 'HF generate that prefills again'],
  (vocabSize) => {
    const prompt = benchPrompt('shared', 0, 64, vocabSize);
    const results = Array.from({ length: 4 }, (_, i) => benchPrompt('result', i, 16, vocabSize));
    const request = { prompt, samples: 16, results, new_tokens: 32, top_p: TOP_P };
    const name = '16 samples of a prompt of 64, 4 turns of 32 + 16 tokens';
    return [{ name, work: ['turns', request], amount: 16 * 4 * 32 }];
  },
);

/** `updates` of one timed run; ours reads weights and moments back at its end, as a step of a run does. */
export const SHAPES = [
  { size: '1M', rows: 32, length: 128, updates: 16 },
  { size: '30M', rows: 8, length: 256, updates: 8 },
] as const;

/** Ways of PyTorch, by the precision that they are compared in. */
const MODES = {
  float32: { compile: 'torch.compile, AVX-512', eager: 'PyTorch as installed' },
  bfloat16: {
    bf16: 'PyTorch bf16 autocast, AVX-512',
    'compile-bf16': 'torch.compile bf16 autocast, AVX-512',
  },
};

/** Forward, backward and Adam on full rows. */
export const learnerEngineBench: Bench = async function* (options) {
  const runs = options.runs ?? (options.quick ? 1 : RUNS);
  for (const { size, rows, length, updates: full } of SHAPES) {
    for (const [precision, modes] of Object.entries(MODES)) {
      const updates = options.quick ? 2 : full;
      yield* await withModel(size, options.say, async ({ config, folder, open }) => {
        const ours = await open(ourEngine(), 'loadLearner', { precision });
        const anchors: Record<string, Child> = {};
        for (const [mode, name] of Object.entries(modes)) {
          // What earlier runs compiled was chosen for how busy the machine was then.
          const more = { TORCHINDUCTOR_CACHE_DIR: path.join(folder, `inductor-${mode}`) };
          const engine = await anchor('torch_learner', options.say, { avx512: mode !== 'eager', more });
          anchors[name] = await open(engine, 'load', { mode });
        }
        const tokens = batchesOf(`learner ${size}`, updates, rows, length, config.vocabSize);
        const shape = `${rows} × ${length} tokens, ${precision}, ${updates} updates`;
        const name = `${size} parameters, ${shape}`;
        const what = { bench: 'engine:learner', name, amount: updates * rows * length };
        return compareEngines(what, ['steps', { tokens }], ours, anchors, { ...options, runs });
      });
    }
  }
};
