import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { ensurePythonEnvironment } from '../../infra/setup/python-environment.ts';
import { AnchorProcess } from './anchor-process.ts';
import { withAvx512 } from './avx512.ts';

const here = import.meta.dirname;

/** Cores that each engine may use. */
export const THREADS = 2;

export function ours(env: NodeJS.ProcessEnv = process.env): AnchorProcess {
  const tsx = pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href;
  return new AnchorProcess('ours', process.execPath, ['--import', tsx, path.join(here, 'ours.ts')], env);
}

/** On a GPU, for `more` of an anchor: the one that this process sees. */
export const ON_GPU: NodeJS.ProcessEnv = {
  BENCH_DEVICE: 'cuda',
  CUDA_VISIBLE_DEVICES: process.env['CUDA_VISIBLE_DEVICES'] ?? '0',
};

/** Python engines that are compared with, from PyPI and pinned; `avx512` as in `withAvx512`, `more` environment variables. */
export async function anchor(
  script: 'hf_generate' | 'llama_cpp_decode' | 'torch_learner' | 'trl_grpo',
  { avx512, say, more = {} }: { avx512: boolean; say: (text: string) => void; more?: NodeJS.ProcessEnv },
): Promise<AnchorProcess> {
  const requirements = path.join(here, 'requirements.txt');
  const { python } = await ensurePythonEnvironment('bench-engine', requirements, say);
  const env = {
    ...(avx512 ? await withAvx512() : process.env),
    OMP_NUM_THREADS: String(THREADS),
    TOKENIZERS_PARALLELISM: 'false',
    HF_HUB_OFFLINE: '1',
    CUDA_VISIBLE_DEVICES: '',
    ...more,
  };
  return new AnchorProcess(script, python, [path.join(here, 'anchors', `${script}.py`)], env);
}
