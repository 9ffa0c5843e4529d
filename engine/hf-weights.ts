import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { weightShapes } from '../core/model/config.ts';
import type { HostTensor, ModelConfig, Weights } from '../core/model/config.ts';
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
  const shards = shardsOf(config, weights, ITEM_BYTES[dtype], maxShardBytes);
  const number = (n: number): string => String(n).padStart(5, '0');
  const nameOf = (i: number): string =>
    shards.length === 1
      ? 'model.safetensors'
      : `model-${number(i + 1)}-of-${number(shards.length)}.safetensors`;
  for (const [i, shard] of shards.entries()) {
    await writeFile(path.join(folder, nameOf(i)), writeSafetensors(new Map(shard), { format: 'pt' }, dtype));
  }
  if (shards.length === 1) return;
  const map = shards.flatMap((shard, i) => shard.map(([name]): [string, string] => [name, nameOf(i)]));
  const total = shards.flat().reduce((sum, [, { data }]) => sum + data.length * ITEM_BYTES[dtype], 0);
  const index = { metadata: { total_size: total }, weight_map: Object.fromEntries(map) };
  await writeFile(path.join(folder, 'model.safetensors.index.json'), `${JSON.stringify(index, null, 2)}\n`);
}

/** In the order of the model, as many as fit. */
function shardsOf(
  config: ModelConfig,
  weights: Weights,
  itemBytes: number,
  maxShardBytes: number,
): [string, HostTensor][][] {
  const shards: [string, HostTensor][][] = [[]];
  let size = 0;
  for (const [name] of weightShapes(config)) {
    const tensor = weights.get(name)!;
    const bytes = tensor.data.length * itemBytes;
    if (size > 0 && size + bytes > maxShardBytes) {
      shards.push([]);
      size = 0;
    }
    shards.at(-1)!.push([name, tensor]);
    size += bytes;
  }
  return shards;
}
