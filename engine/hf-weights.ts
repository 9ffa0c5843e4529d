import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { ModelConfig, Weights } from '../core/model/config.ts';
import { INDEX, indexBytesOf, weightFilesOf } from './hf-shards.ts';
import { ITEM_BYTES } from './safetensors/dtypes.ts';
import type { FloatDtype } from './safetensors/dtypes.ts';
import { writeSafetensors } from './safetensors/safetensors.ts';

export interface WeightFileOptions {
  dtype: FloatDtype;
  /** A file holds at most so many bytes of tensors, unless one tensor alone has more. */
  maxShardBytes: number;
}

/**
 * Writes weights as `save_pretrained` does: one `model.safetensors`, or shards and `model.safetensors.index.json` where
 * one would be too large.
 */
export async function writeHfWeights(
  folder: string,
  config: ModelConfig,
  weights: Weights,
  { dtype, maxShardBytes }: WeightFileOptions,
): Promise<void> {
  const files = weightFilesOf(config, weights, ITEM_BYTES[dtype], maxShardBytes);
  for (const { name, tensors } of files) {
    await writeFile(path.join(folder, name), writeSafetensors(new Map(tensors), { format: 'pt' }, dtype));
  }
  if (files.length > 1) await writeFile(path.join(folder, INDEX), indexBytesOf(files, ITEM_BYTES[dtype]));
}
