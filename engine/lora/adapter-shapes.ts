import type { LoraSpec } from '../../core/schema/lora.ts';
import { weightShapes, type ModelConfig } from '../../core/model/config.ts';

/** PEFT's name of a matrix of a module, e.g. `base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight`. */
export const adapterName = (module: string, matrix: 'A' | 'B'): string =>
  `base_model.model.${module}.lora_${matrix}.weight`;

/** α / r; α / √r for rank-stabilized LoRA (Kalajdzievski 2023, theorem 3.2). */
export const loraScale = ({ rank, alpha, rsLora }: LoraSpec): number =>
  alpha / (rsLora ? Math.sqrt(rank) : rank);

/** A layer with matrices A [r, in] and B [out, r]: y = x Wᵀ + s x Aᵀ Bᵀ. */
export interface AdaptedModule {
  module: string;
  out: number;
  in: number;
}

/** The modules of a model that are adapted. */
export function adaptedModules(config: ModelConfig, lora: LoraSpec): AdaptedModule[] {
  return weightShapes(config).flatMap(([name, shape]) => {
    const module = name.replace(/\.weight$/, '');
    if (module === name || !lora.targetModules.includes(module.split('.').at(-1)!)) return [];
    return [{ module, out: shape[0]!, in: shape[1]! }];
  });
}

/** Every matrix of an adapter with its shape, in the order in which they are stored. */
export function adapterShapes(config: ModelConfig, lora: LoraSpec): [name: string, shape: number[]][] {
  return adaptedModules(config, lora).flatMap(({ module, out, in: inputs }): [string, number[]][] => [
    [adapterName(module, 'A'), [lora.rank, inputs]],
    [adapterName(module, 'B'), [out, lora.rank]],
  ]);
}

/** What of a model is given and what is learnt, by name and shape, in the order in which it is stored and computed with. */
export function parameterShapes({ config, lora }: { config: ModelConfig; lora?: LoraSpec | undefined }) {
  const weights = weightShapes(config);
  return lora ? { frozen: weights, trained: adapterShapes(config, lora) } : { frozen: [], trained: weights };
}
