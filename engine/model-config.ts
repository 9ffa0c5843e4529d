/**
 * The shape of a decoder-only transformer of the Llama family, as in Hugging Face's `config.json`.
 * d = hiddenSize, H = attentionHeads, K = keyValueHeads, D = headSize, F = intermediateSize, V = vocabSize.
 */
export interface ModelConfig {
  vocabSize: number;
  hiddenSize: number;
  intermediateSize: number;
  layers: number;
  attentionHeads: number;
  keyValueHeads: number;
  headSize: number;
  /** Longest sequence in tokens: prompt + everything after it. */
  maxPositions: number;
  rmsNormEpsilon: number;
  ropeTheta: number;
  tieEmbeddings: boolean;
}

/** A float32 tensor in host memory, row-major. */
export interface HostTensor {
  shape: readonly number[];
  data: Float32Array;
}

/** Weights under their Hugging Face names (`model.embed_tokens.weight`, …); a linear layer is `[out, in]`. */
export type Weights = Map<string, HostTensor>;

/** Every weight of a model with its shape, in the order in which they are stored. */
export function weightShapes(config: ModelConfig): [name: string, shape: number[]][] {
  const { hiddenSize: d, intermediateSize: F, headSize: D, attentionHeads: H, keyValueHeads: K } = config;
  const shapes: [string, number[]][] = [['model.embed_tokens.weight', [config.vocabSize, d]]];
  for (let layer = 0; layer < config.layers; layer++) {
    const at = (name: string) => `model.layers.${layer}.${name}`;
    shapes.push(
      [at('input_layernorm.weight'), [d]],
      [at('self_attn.q_proj.weight'), [H * D, d]],
      [at('self_attn.k_proj.weight'), [K * D, d]],
      [at('self_attn.v_proj.weight'), [K * D, d]],
      [at('self_attn.o_proj.weight'), [d, H * D]],
      [at('post_attention_layernorm.weight'), [d]],
      [at('mlp.gate_proj.weight'), [F, d]],
      [at('mlp.up_proj.weight'), [F, d]],
      [at('mlp.down_proj.weight'), [d, F]],
    );
  }
  shapes.push(['model.norm.weight', [d]]);
  if (!config.tieEmbeddings) shapes.push(['lm_head.weight', [config.vocabSize, d]]);
  return shapes;
}

export function parameterCount(config: ModelConfig): number {
  return weightShapes(config).reduce((sum, [, shape]) => sum + shape.reduce((a, b) => a * b, 1), 0);
}
