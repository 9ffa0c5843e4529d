import type { ModelConfig, Weights } from '../model-config.ts';
import { adaptedModules, adapterName, loraScale } from './adapter-shapes.ts';
import type { LoraAdapter } from './adapter.ts';

/**
 * Weights that compute what base and adapter compute together: W + s B A for every adapted module. The others are the
 * base's own arrays. The same bits on every machine: the order of the sums is this one.
 */
export function mergeAdapter(config: ModelConfig, base: Weights, { lora, weights }: LoraAdapter): Weights {
  const merged: Weights = new Map(base);
  const scale = loraScale(lora);
  for (const { module, out, in: inputs } of adaptedModules(config, lora)) {
    const { shape, data } = base.get(`${module}.weight`)!;
    const a = weights.get(adapterName(module, 'A'))!.data;
    const b = weights.get(adapterName(module, 'B'))!.data;
    const sum = data.slice();
    const row = new Float64Array(inputs);
    for (let o = 0; o < out; o++) {
      row.fill(0);
      for (let r = 0; r < lora.rank; r++) {
        const factor = b[o * lora.rank + r]!;
        if (factor === 0) continue;
        const at = r * inputs;
        for (let i = 0; i < inputs; i++) row[i]! += factor * a[at + i]!;
      }
      const at = o * inputs;
      for (let i = 0; i < inputs; i++) sum[at + i]! += scale * row[i]!;
    }
    merged.set(`${module}.weight`, { shape, data: sum });
  }
  return merged;
}
