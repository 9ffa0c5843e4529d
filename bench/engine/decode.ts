import { RandomStream } from '../../core/random.ts';
import type { BenchOptions } from '../bench.ts';
import type { BenchRow } from '../bench-row.ts';
import type { AnchorProcess } from './anchor-process.ts';
import { anchor, ours, THREADS } from './engines.ts';
import { compare } from './interleave.ts';
import { MODELS, randomWeights, withFolder } from './models.ts';
import type { ModelSize } from './models.ts';

const TOP_P = 0.95;
const RUNS = 5;

interface Engines {
  mine: AnchorProcess;
  llama: AnchorProcess;
  transformers: AnchorProcess;
}

/** Starts all three with the same weights, and sees that they continue a prompt alike before anything is timed. */
async function withEngines<T>(
  size: ModelSize,
  { say }: Pick<BenchOptions, 'say'>,
  use: (engines: Engines) => AsyncGenerator<T>,
  give: (result: T) => void,
): Promise<void> {
  const config = MODELS[size];
  await withFolder(config, randomWeights(config), async (folder) => {
    const engines: Engines = {
      mine: ours(),
      llama: await anchor('llama_cpp_decode', { avx512: false, say }),
      transformers: await anchor('hf_generate', { avx512: true, say }),
    };
    try {
      const { backend } = await engines.mine.call('loadDecoder', { folder, threads: THREADS });
      say(`ours: ${String(backend)}`);
      await engines.llama.call('load', { folder, threads: THREADS });
      await engines.transformers.call('load', { folder, threads: THREADS });
      await agree(engines, promptOf('agree', 0, 16, config.vocabSize));
      for await (const result of use(engines)) give(result);
    } finally {
      await Promise.all(Object.values(engines).map((engine: AnchorProcess) => engine.close()));
    }
  });
}

/** Throws Error when an engine continues greedily in another way: then one of them runs another model. */
async function agree(engines: Engines, prompt: number[]): Promise<void> {
  const said = new Map<string, string>();
  for (const [name, engine] of Object.entries(engines) as [string, AnchorProcess][]) {
    const { tokens } = await engine.call('greedy', { prompt, new_tokens: 24 });
    said.set(name, (tokens as number[]).join(' '));
  }
  if (new Set(said.values()).size > 1) {
    const lines = [...said].map(([name, tokens]) => `${name}: ${tokens}`);
    throw new Error(`the engines do not continue alike:\n${lines.join('\n')}`);
  }
}

const promptOf = (name: string, index: number, length: number, vocabSize: number): number[] => {
  const random = new RandomStream(name, index);
  return Array.from({ length }, () => random.int(0, vocabSize - 1));
};

/** Prompts of 16 tokens and 128 new ones, sampled with top-p. */
export async function* decodeBench(options: BenchOptions): AsyncGenerator<BenchRow> {
  const runs = options.runs ?? (options.quick ? 1 : RUNS);
  const newTokens = options.quick ? 32 : 128;
  yield* rowsOf(['1M', '30M'], options, async function* (size, { mine, llama, transformers }) {
    const { vocabSize } = MODELS[size];
    for (const batch of [1, 16, 64]) {
      const prompts = Array.from({ length: batch }, (_, i) => promptOf('decode', i, 16, vocabSize));
      const request = { prompts, new_tokens: newTokens, top_p: TOP_P };
      yield* compare(
        {
          bench: 'engine:decode',
          name: `${size} parameters, batch ${batch}, 16 + ${newTokens} tokens, top-p ${TOP_P}`,
          unit: 'tokens/s',
          amount: batch * newTokens,
        },
        { name: 'ours', run: () => mine.call('decode', request) },
        [
          { name: 'llama.cpp f32', run: () => llama.call('decode', request) },
          { name: 'HF generate, AVX-512', run: () => transformers.call('decode', request) },
        ],
        { ...options, runs },
      );
    }
  });
}

/** A group of 16 with a shared prompt of 64 tokens: 4 turns of 32 sampled tokens, each followed by a result of 16. */
export async function* turnsBench(options: BenchOptions): AsyncGenerator<BenchRow> {
  const runs = options.runs ?? (options.quick ? 1 : RUNS);
  yield* rowsOf(['1M', '30M'], options, async function* (size, { mine, llama, transformers }) {
    const { vocabSize } = MODELS[size];
    const request = {
      prompt: promptOf('shared', 0, 64, vocabSize),
      samples: 16,
      results: Array.from({ length: 4 }, (_, i) => promptOf('result', i, 16, vocabSize)),
      new_tokens: 32,
      top_p: TOP_P,
    };
    yield* compare(
      {
        bench: 'engine:turns',
        name: `${size} parameters, 16 samples of a prompt of 64, 4 turns of 32 + 16 tokens`,
        unit: 'tokens/s',
        amount: 16 * 4 * 32,
      },
      { name: 'ours', run: () => mine.call('turns', request) },
      [
        { name: 'llama.cpp f32 that keeps its caches', run: () => llama.call('turns', request) },
        { name: 'HF generate that prefills again', run: () => transformers.call('turns', request) },
      ],
      { ...options, runs },
    );
  });
}

async function* rowsOf(
  sizes: readonly ModelSize[],
  options: BenchOptions,
  cases: (size: ModelSize, engines: Engines) => AsyncGenerator<BenchRow>,
): AsyncGenerator<BenchRow> {
  for (const size of sizes) {
    const rows: BenchRow[] = [];
    await withEngines(
      size,
      options,
      (engines) => cases(size, engines),
      (row) => rows.push(row),
    );
    yield* rows;
  }
}
