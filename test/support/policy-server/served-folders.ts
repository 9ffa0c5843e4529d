import { cp, mkdir, readFile, truncate, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { LORA_MODULES } from '../../../core/names.ts';
import type { ModelConfig, Weights } from '../../../core/model/config.ts';
import { normal, randomKey } from '../../../core/random.ts';
import { writeHfWeights } from '../../../engine/hf-weights.ts';
import { adapterShapes } from '../../../engine/lora/adapter-shapes.ts';
import type { LoraAdapter } from '../../../engine/lora/adapter.ts';
import {
  ADAPTER_CONFIG,
  ADAPTER_MODEL,
  toPeftConfig,
  writePeftModel,
} from '../../../engine/lora/peft-format.ts';
import { newModelFiles } from '../../../engine/new-model-files.ts';
import { randomWeights } from '../engine/random-model.ts';
import { tokenizer, tokenizerJson } from '../fixture-tokenizer.ts';

/** A shape that vLLM's kernels for processors take: heads of 32. */
export const SERVED: ModelConfig = {
  vocabSize: tokenizer.vocabSize,
  hiddenSize: 64,
  intermediateSize: 96,
  layers: 2,
  attentionHeads: 2,
  keyValueHeads: 1,
  headSize: 32,
  maxPositions: 512,
  rmsNormEpsilon: 1e-5,
  ropeTheta: 10_000,
  tieEmbeddings: false,
};

/** Models and adapters as a learner leaves them for a server, and what they are. */
export interface ServedFolders {
  config: ModelConfig;
  /** Two sets of weights of one shape. */
  a: { folder: string; weights: Weights };
  b: { folder: string; weights: Weights };
  /** `a` with a safetensors file that ends in its middle. */
  truncated: string;
  /** `a` with a tokenizer that gives a text other ids. */
  otherTokenizer: string;
  /** Two adapters to `a`. */
  adapters: [{ folder: string; adapter: LoraAdapter }, { folder: string; adapter: LoraAdapter }];
}

/** Writes all of them below `root`, an empty folder. */
export async function writeServedFolders(root: string): Promise<ServedFolders> {
  const [a, b] = await Promise.all([model(root, 'a', 1), model(root, 'b', 2)]);
  const adapters = await Promise.all([adapter(root, a.folder, 0), adapter(root, a.folder, 1)]);
  const truncated = path.join(root, 'truncated');
  await cp(a.folder, truncated, { recursive: true });
  const file = path.join(truncated, 'model.safetensors');
  await truncate(file, Math.floor((await readFile(file)).length / 2));
  const otherTokenizer = path.join(root, 'other-tokenizer');
  await cp(a.folder, otherTokenizer, { recursive: true });
  await writeFile(path.join(otherTokenizer, 'tokenizer.json'), withoutMerges(tokenizerJson));
  return { config: SERVED, a, b, truncated, otherTokenizer, adapters };
}

async function model(
  root: string,
  name: string,
  seed: number,
): Promise<{ folder: string; weights: Weights }> {
  const folder = path.join(root, name);
  await mkdir(folder);
  for (const [file, bytes] of newModelFiles(SERVED, tokenizerJson))
    await writeFile(path.join(folder, file), bytes);
  const weights = randomWeights(SERVED, seed);
  await writeHfWeights(folder, SERVED, weights, { dtype: 'F32', maxShardBytes: 2 ** 30 });
  return { folder, weights };
}

/** Neither of its matrices is zero, so that it changes what the base says. */
async function adapter(
  root: string,
  base: string,
  seed: number,
): Promise<{ folder: string; adapter: LoraAdapter }> {
  const folder = path.join(root, `adapter-${seed}`);
  await mkdir(folder);
  const lora = { rank: 8, alpha: 16, rsLora: false, targetModules: [...LORA_MODULES] };
  const weights: Weights = new Map(
    adapterShapes(SERVED, lora).map(([name, shape]) => {
      const key = randomKey('adapter', seed, name);
      const draw = (_: unknown, i: number): number => (0.5 * normal(key, i)) / Math.sqrt(shape[1]!);
      return [name, { shape, data: Float32Array.from({ length: shape[0]! * shape[1]! }, draw) }];
    }),
  );
  const made: LoraAdapter = { lora, weights };
  await writeFile(path.join(folder, ADAPTER_CONFIG), JSON.stringify(toPeftConfig(lora, base)));
  await writeFile(path.join(folder, ADAPTER_MODEL), writePeftModel(SERVED, made));
  return { folder, adapter: made };
}

/** A tokenizer of as many tokens that joins no letters. */
function withoutMerges(text: string): string {
  const json = JSON.parse(text) as { model: { merges: unknown[] } };
  return JSON.stringify({ ...json, model: { ...json.model, merges: [] } });
}
