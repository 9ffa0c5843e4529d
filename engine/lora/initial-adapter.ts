import { randomKey, uniform } from '../../core/random.ts';
import type { LoraSpec } from '../../core/schema/lora.ts';
import { atOnce } from '../in-pieces.ts';
import type { InPieces } from '../in-pieces.ts';
import type { ModelConfig, Weights } from '../../core/model/config.ts';
import { adapterShapes } from './adapter-shapes.ts';

/**
 * A fresh adapter, which changes nothing yet: A uniform in ± 1/√in (He et al. 2015 with a = √5, as PEFT's default has
 * it), B zero. A pure function of its arguments.
 */
export const initialAdapter = (config: ModelConfig, lora: LoraSpec, seed: number): Weights =>
  atOnce(initialAdapterInPieces(config, lora, seed));

/** Numbers between two breaks: about a millisecond. */
const PIECE = 8192;

/** The same, with breaks. */
export function* initialAdapterInPieces(
  config: ModelConfig,
  lora: LoraSpec,
  seed: number,
): InPieces<Weights> {
  const adapter: Weights = new Map();
  for (const [name, shape] of adapterShapes(config, lora)) {
    const size = shape[0]! * shape[1]!;
    const data = new Float32Array(size);
    adapter.set(name, { shape, data });
    if (name.endsWith('.lora_B.weight')) continue;
    const bound = 1 / Math.sqrt(shape[1]!);
    const key = randomKey(seed, 'initial-adapter', name);
    for (let i = 0; i < size; i++) {
      if (i % PIECE === 0) yield;
      data[i] = bound * (2 * uniform(key, i) - 1);
    }
  }
  return adapter;
}
