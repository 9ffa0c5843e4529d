import path from 'node:path';
import { RandomStream } from '../../core/random.ts';
import type { BenchOptions } from '../bench.ts';
import type { BenchRow } from '../bench-row.ts';
import type { AnchorProcess } from './anchor-process.ts';
import { anchor, ours, THREADS } from './engines.ts';
import { compare } from './interleave.ts';
import type { Contestant } from './interleave.ts';
import { MODELS, randomWeights, withFolder } from './models.ts';
import type { ModelSize } from './models.ts';

const RUNS = 5;

interface Shape {
  size: ModelSize;
  rows: number;
  length: number;
  /** Updates of one timed run; ours reads weights and moments back at its end, as a step of a run does. */
  updates: number;
}
const SHAPES: readonly Shape[] = [
  { size: '1M', rows: 32, length: 128, updates: 16 },
  { size: '30M', rows: 8, length: 256, updates: 8 },
];

/** Forward, backward and Adam on full rows. */
export async function* learnerEngineBench(options: BenchOptions): AsyncGenerator<BenchRow> {
  const runs = options.runs ?? (options.quick ? 1 : RUNS);
  for (const shape of SHAPES) {
    yield* precisionRows(shape, 'float32', ['compile', 'eager'], runs, options);
    yield* precisionRows(shape, 'bfloat16', ['bf16', 'compile-bf16'], runs, options);
  }
}

const NAMES: Record<string, string> = {
  compile: 'torch.compile, AVX-512',
  eager: 'PyTorch as installed',
  bf16: 'PyTorch bf16 autocast, AVX-512',
  'compile-bf16': 'torch.compile bf16 autocast, AVX-512',
};

async function* precisionRows(
  { size, rows, length, updates: full }: Shape,
  precision: 'float32' | 'bfloat16',
  modes: readonly string[],
  runs: number,
  options: BenchOptions,
): AsyncGenerator<BenchRow> {
  const config = MODELS[size];
  const updates = options.quick ? 2 : full;
  const random = new RandomStream('learner', size);
  const tokens = Array.from({ length: updates }, () =>
    Array.from({ length: rows }, () => Array.from({ length }, () => random.int(0, config.vocabSize - 1))),
  );
  const started: AnchorProcess[] = [];
  const result = await withFolder(config, randomWeights(config), async (folder) => {
    try {
      const mine = ours();
      started.push(mine);
      await mine.call('loadLearner', { folder, precision });
      const contestants: Contestant[] = [];
      for (const mode of modes) {
        // What earlier runs compiled was chosen for how busy the machine was then.
        const more = { TORCHINDUCTOR_CACHE_DIR: path.join(folder, `inductor-${mode}`) };
        const engine = await anchor('torch_learner', { avx512: mode !== 'eager', say: options.say, more });
        started.push(engine);
        await engine.call('load', { folder, threads: THREADS, mode });
        contestants.push({ name: NAMES[mode]!, run: () => engine.call('steps', { tokens }) });
      }
      const all: BenchRow[] = [];
      const comparison = compare(
        {
          bench: 'engine:learner',
          name: `${size} parameters, ${rows} × ${length} tokens, ${precision}, ${updates} updates`,
          unit: 'tokens/s',
          amount: updates * rows * length,
        },
        { name: 'ours', run: () => mine.call('steps', { tokens }) },
        contestants,
        { ...options, runs },
      );
      for await (const row of comparison) all.push(row);
      return all;
    } finally {
      await Promise.all(started.map((engine) => engine.close()));
    }
  });
  yield* result;
}
