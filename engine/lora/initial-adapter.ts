import { randomKey, uniform } from '../../core/random.ts';
import type { LoraSpec } from '../../core/spec.ts';
import type { ModelConfig, Weights } from '../model-config.ts';
import { adapterShapes } from './adapter-shapes.ts';

/**
 * A fresh adapter, which changes nothing yet: A uniform in ± 1/√in (He et al. 2015 with a = √5, as PEFT's default has
 * it), B zero. A pure function of its arguments.
 */
export function initialAdapter(config: ModelConfig, lora: LoraSpec, seed: number): Weights {
  return new Map(
    adapterShapes(config, lora).map(([name, shape]) => {
      const size = shape[0]! * shape[1]!;
      if (name.endsWith('.lora_B.weight')) return [name, { shape, data: new Float32Array(size) }];
      const bound = 1 / Math.sqrt(shape[1]!);
      const key = randomKey(seed, 'initial-adapter', name);
      const data = Float32Array.from({ length: size }, (_, i) => bound * (2 * uniform(key, i) - 1));
      return [name, { shape, data }];
    }),
  );
}
