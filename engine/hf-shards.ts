import { weightShapes } from '../core/model/config.ts';
import type { HostTensor, ModelConfig, Weights } from '../core/model/config.ts';

export const SINGLE = 'model.safetensors';
export const INDEX = 'model.safetensors.index.json';
/** The bound of `save_pretrained` of transformers, bytes of tensors. */
export const MAX_SHARD_BYTES = 5e9;

export interface WeightFile {
  name: string;
  tensors: [string, HostTensor][];
}

/**
 * Which file has which weights, as `save_pretrained` shares them out: one `model.safetensors`, or shards of at most
 * `maxShardBytes`, in the order of the model, as many tensors in each as fit. A tensor that is larger alone has its own.
 */
export function weightFilesOf(
  config: ModelConfig,
  weights: Weights,
  itemBytes: number,
  maxShardBytes: number,
): WeightFile[] {
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
  return shards.map((tensors, i) => ({ name: nameOf(i, shards.length), tensors }));
}

/** `model.safetensors.index.json` of shards: which has which tensor. */
export function indexBytesOf(files: readonly WeightFile[], itemBytes: number): Uint8Array {
  const all = files.flatMap(({ tensors }) => tensors);
  const total = all.reduce((sum, [, { data }]) => sum + data.length * itemBytes, 0);
  const map = files.flatMap(({ name, tensors }) => tensors.map(([tensor]) => [tensor, name]));
  const index = { metadata: { total_size: total }, weight_map: Object.fromEntries(map) as object };
  return new TextEncoder().encode(`${JSON.stringify(index, null, 2)}\n`);
}

const SHARD = /^model-(\d{5})-of-(\d{5})\.safetensors$/;

/** The files of weights among these names, in order; empty where some are missing. */
export function weightFileNames(names: readonly string[]): string[] {
  if (names.includes(SINGLE)) return [SINGLE];
  const shards = names.filter((name) => SHARD.test(name)).toSorted();
  const whole = shards.every((name, i) => name === nameOf(i, shards.length));
  return whole && names.includes(INDEX) ? shards : [];
}

function nameOf(index: number, count: number): string {
  const five = (n: number): string => String(n).padStart(5, '0');
  return count === 1 ? SINGLE : `model-${five(index + 1)}-of-${five(count)}.safetensors`;
}
