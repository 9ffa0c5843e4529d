import { existsSync } from 'node:fs';
import { mkdir, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { GradusError } from '../../core/errors.ts';
import type { Json } from '../../core/json/json.ts';
import type { ModelConfig } from '../../core/model/config.ts';
import { writeHfWeights } from '../../engine/hf-weights.ts';
import { newModelFiles } from '../../engine/new-model-files.ts';
import { cacheEntry, cacheRoot } from '../../infra/cache-dir.ts';
import { findOnPath, runCommand, tailOf } from '../../infra/setup/command.ts';
import { ensurePythonEnvironment } from '../../infra/setup/python-environment.ts';
import { randomWeights } from '../../test/support/engine/random-model.ts';
import { interleavedRuns, benchRowsOf } from '../bench.ts';
import type { BenchOptions, BenchRow } from '../bench.ts';
import { Child, withChildren } from '../child.ts';
import type { ChildAnswer } from '../child.ts';
import { withTemporaryFolder } from '../installations.ts';

/** Cores that each engine may use. */
export const THREADS = 2;

const common = { maxPositions: 512, rmsNormEpsilon: 1e-6, ropeTheta: 10_000, tieEmbeddings: false };

/** The sizes that are compared. */
export const MODELS: Record<'1M' | '30M', ModelConfig> = {
  '1M': {
    ...common,
    vocabSize: 512,
    hiddenSize: 128,
    intermediateSize: 384,
    layers: 4,
    attentionHeads: 4,
    keyValueHeads: 2,
    headSize: 32,
  },
  '30M': {
    ...common,
    vocabSize: 8192,
    hiddenSize: 512,
    intermediateSize: 1280,
    layers: 8,
    attentionHeads: 8,
    keyValueHeads: 4,
    headSize: 64,
  },
};
export type ModelSize = keyof typeof MODELS;

/** Ours, behind the same JSON lines as the anchors. */
export const ourEngine = (env: NodeJS.ProcessEnv = process.env): Child =>
  Child.own('engine/ours.ts', { env });

/** Python engines that are compared with, from PyPI and pinned; `avx512` as in `withAvx512`, `more` environment variables. */
export async function anchor(
  script: 'hf_generate' | 'llama_cpp_decode' | 'torch_learner' | 'torch_worker' | 'trl_grpo' | 'trl_peft',
  say: (text: string) => void,
  { avx512 = false, more = {} }: { avx512?: boolean; more?: NodeJS.ProcessEnv } = {},
): Promise<Child> {
  const requirements = path.join(import.meta.dirname, 'requirements.txt');
  const { python } = await ensurePythonEnvironment('bench-engine', requirements, say);
  const env = {
    ...(avx512 ? await withAvx512() : process.env),
    OMP_NUM_THREADS: String(THREADS),
    TOKENIZERS_PARALLELISM: 'false',
    HF_HUB_OFFLINE: '1',
    CUDA_VISIBLE_DEVICES: '',
    ...more,
  };
  return new Child(script, python, [path.join(import.meta.dirname, 'anchors', `${script}.py`)], { env });
}

/** MKL asks this of the processor's maker before it takes its AVX-512 code, which AMD's processors run as well. */
const SOURCE = `int mkl_serv_intel_cpu_true(void) { return 1; }
int mkl_serv_intel_cpu(void) { return 1; }
`;

/**
 * The environment under which PyTorch's MKL uses AVX-512 on a processor that is not Intel's: without it PyTorch would
 * be measured at half its speed. Throws GradusError('infra', 'build-failed').
 */
async function withAvx512(): Promise<NodeJS.ProcessEnv> {
  const folder = cacheEntry(cacheRoot(), { name: 'bench-mkl', version: '1' });
  const library = path.join(folder, 'mkl.so');
  if (!existsSync(library)) {
    const failed = (why: string) => new GradusError('infra', 'build-failed', why);
    const compiler = (await findOnPath('gcc')) ?? (await findOnPath('clang'));
    if (compiler === undefined) throw failed('gcc or clang is needed to measure PyTorch at its full speed');
    await mkdir(folder, { recursive: true });
    const source = path.join(folder, `mkl-${process.pid}.c`);
    await writeFile(source, SOURCE);
    const partial = `${library}.${process.pid}`;
    const built = await runCommand(compiler, ['-shared', '-fPIC', '-O1', source, '-o', partial]);
    if (built.code !== 0) throw failed(tailOf(built.stderr));
    await rename(partial, library);
  }
  return { ...process.env, LD_PRELOAD: library };
}

export interface Model {
  config: ModelConfig;
  /** A Hugging Face folder. */
  folder: string;
  /** Has an engine load the model; it is closed when the model goes. */
  open: (engine: Child, op?: string, request?: { [field: string]: Json }) => Promise<Child>;
}

/** A model of random weights, for `use`. */
export function withModel<T>(
  size: ModelSize,
  say: (text: string) => void,
  use: (model: Model) => Promise<T>,
): Promise<T> {
  const config = MODELS[size];
  return withTemporaryFolder(async (folder) => {
    // Anchors are given token ids: nobody reads the tokenizer.
    for (const [name, bytes] of newModelFiles(config, '{}')) await writeFile(path.join(folder, name), bytes);
    await writeHfWeights(folder, config, randomWeights(config), { dtype: 'F32', maxShardBytes: Infinity });
    return withChildren((keep) => {
      const open: Model['open'] = async (engine, op = 'load', request = {}) => {
        const { backend } = await keep(engine).call(op, { folder, threads: THREADS, ...request });
        if (typeof backend === 'string') say(`ours: ${backend}`);
        return engine;
      };
      return use({ config, folder, open });
    });
  });
}

/** Lets all engines do the same work in turn; a row for each anchor, by its name: `amount` tokens / seconds. */
export async function compareEngines(
  { bench, name, amount }: { bench: string; name: string; amount: number },
  [op, request]: readonly [string, { [field: string]: Json }],
  ours: Child,
  anchors: Readonly<Record<string, Child>>,
  options: BenchOptions & { runs: number },
): Promise<BenchRow[]> {
  const all = Object.entries({ ours, ...anchors });
  const sides = all.map(([side, engine]) => [side, () => engine.call(op, request)] as const);
  const speed = ({ seconds }: ChildAnswer): number => amount / seconds;
  const show = (answer: ChildAnswer): string => `${Math.round(speed(answer))} tokens/s`;
  const measured = await interleavedRuns<string, ChildAnswer>(name, Object.fromEntries(sides), show, options);
  const megabytes = (side: string): number => Math.round(measured[side]!.at(-1)!.peakBytes / 1e6);
  return Object.keys(anchors).map((side) => ({
    ...benchRowsOf(bench)(
      `${name}, vs ${side}`,
      'tokens/s',
      'more',
      measured['ours']!.map(speed),
      measured[side]!.map(speed),
    ),
    peakMegabytes: { ours: megabytes('ours'), anchor: megabytes(side) },
  }));
}
