import type { LoraSpec } from '../../core/schema/lora.ts';
import type { Weights } from '../../core/model/config.ts';

/** Low-rank matrices under PEFT's names, in the order of `adapterShapes`, and what they are to a model. */
export interface LoraAdapter {
  lora: LoraSpec;
  weights: Weights;
}
