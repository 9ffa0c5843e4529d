import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { RandomStream } from '../../core/random.ts';
import type { Bench, BenchOptions } from '../bench.ts';
import { benchRow } from '../bench-row.ts';
import type { BenchRow } from '../bench-row.ts';
import type { AnchorProcess } from '../engine/anchor-process.ts';
import { anchor, THREADS } from '../engine/engines.ts';
import { compare } from '../engine/interleave.ts';
import type { Contestant } from '../engine/interleave.ts';
import { MODELS, randomWeights, withFolder } from '../engine/models.ts';
import type { ModelSize } from '../engine/models.ts';
import { anchorOn, engineOn, onProcessor } from './device.ts';
import type { Device } from './device.ts';

/** |ΔW| / |W| after the updates: float32 sums in another order move weights by some 1e-7 an update. */
const LARGEST_DIFFERENCE = 1e-5;
const SHAPES = [
  { size: '1M', rows: 32, length: 128, updates: 8 },
  { size: '30M', rows: 8, length: 256, updates: 4 },
] as const;

/** The learner on a GPU: the processor's weights, its own bits again, and the speed of PyTorch on the same GPU. */
export const learnerOnGpu = (device: Device): Bench =>
  async function* (options) {
    for (const shape of SHAPES) yield* rowsOf(device, shape, options);
  };

async function* rowsOf(
  device: Device,
  { size, rows, length, updates: full }: { size: ModelSize; rows: number; length: number; updates: number },
  options: BenchOptions,
): AsyncGenerator<BenchRow> {
  const config = MODELS[size];
  const updates = options.quick ? 2 : full;
  const random = new RandomStream('gpu', size);
  const tokens = Array.from({ length: updates }, () =>
    Array.from({ length: rows }, () => Array.from({ length }, () => random.int(0, config.vocabSize - 1))),
  );
  const shape = `${size} parameters, ${rows} × ${length} tokens, ${updates} updates`;
  const bench = 'gpu:learner';
  yield* await withFolder(config, randomWeights(config), async (folder) => {
    const started: AnchorProcess[] = [];
    const open = (engine: AnchorProcess): AnchorProcess => {
      started.push(engine);
      return engine;
    };
    const trained = async (engine: AnchorProcess, name: string): Promise<Buffer> => {
      const { backend } = await engine.call('loadLearner', { folder, precision: 'float32' });
      options.say(`  ${name}: ${String(backend)}`);
      await engine.call('steps', { tokens });
      await engine.call('writeWeights', { file: path.join(folder, name) });
      return readFile(path.join(folder, name));
    };
    try {
      const mine = open(engineOn(device));
      const first = await trained(mine, 'first');
      const others: Buffer[] = [];
      for (const [engine, name] of [
        [engineOn(device), 'again'],
        [onProcessor(), 'processor'],
      ] as const) {
        others.push(await trained(open(engine), name));
        // Gigabytes that the comparison below has need of.
        await engine.close();
      }
      const [again, processor] = others as [Buffer, Buffer];
      const found: BenchRow[] = [
        benchRow({
          bench,
          case: `${shape}: |ΔW| / |W| to the processor's`,
          unit: 'relative difference',
          better: 'less',
          ours: [difference(first, processor)],
          anchor: LARGEST_DIFFERENCE,
        }),
        benchRow({
          bench,
          case: `${shape}: the same bits in another process`,
          unit: 'of 1',
          better: 'more',
          ours: [digest(first) === digest(again) ? 1 : 0],
          anchor: 1,
        }),
      ];
      const contestants: Contestant[] = [];
      for (const mode of ['compile', 'eager']) {
        const engine = open(
          await anchor('torch_learner', {
            avx512: false,
            say: options.say,
            more: { TORCHINDUCTOR_CACHE_DIR: path.join(folder, `inductor-${mode}`), ...anchorOn(device) },
          }),
        );
        await engine.call('load', { folder, threads: THREADS, mode });
        contestants.push({ name: `PyTorch, ${mode}`, run: () => engine.call('steps', { tokens }) });
      }
      const comparison = compare(
        { bench, name: `${shape}, float32`, unit: 'tokens/s', amount: updates * rows * length },
        { name: 'ours', run: () => mine.call('steps', { tokens }) },
        contestants,
        { ...options, runs: options.quick ? 1 : 3 },
      );
      for await (const row of comparison) found.push(row);
      return found;
    } finally {
      await Promise.all(started.map((engine) => engine.close()));
    }
  });
}

const digest = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

/** √(Σ (a − b)²) / √(Σ b²) over float32 values. */
function difference(a: Buffer, b: Buffer): number {
  const [left, right] = [a, b].map(
    (bytes) => new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4),
  ) as [Float32Array, Float32Array];
  let [apart, size] = [0, 0];
  right.forEach((value, i) => {
    apart += (left[i]! - value) ** 2;
    size += value ** 2;
  });
  return Math.sqrt(apart / size);
}
