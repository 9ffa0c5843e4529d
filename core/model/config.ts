import type { ModelSpec } from '../schema/model.ts';

/**
 * How rotary frequencies are stretched for contexts longer than those of pre-training, as `config.json` says it.
 * `linear`: position interpolation (Chen et al. 2023). `llama3`: long waves are interpolated, short ones kept, those
 * between blended (Llama 3.1). `yarn`: the same by the number of rotations, with a temperature on attention (Peng et
 * al. 2023, section 3). `dynamic` NTK scaling changes nothing up to `max_position_embeddings`, where we end, and is
 * therefore no scaling here.
 */
export type RopeScaling =
  | { kind: 'linear'; factor: number }
  | {
      kind: 'llama3';
      factor: number;
      lowFrequencyFactor: number;
      highFrequencyFactor: number;
      originalPositions: number;
    }
  | {
      kind: 'yarn';
      factor: number;
      betaFast: number;
      betaSlow: number;
      originalPositions: number;
      attentionFactor: number;
      /** Whether the ends of the ramp are rounded to whole dimensions. */
      truncate: boolean;
    };

/**
 * The shape of a decoder-only transformer of the Llama, Qwen2 or Qwen3 family, as in Hugging Face's `config.json`.
 * d = hiddenSize, H = attentionHeads, K = keyValueHeads, D = headSize, F = intermediateSize, V = vocabSize.
 */
export interface ModelConfig extends ModelSpec {
  rmsNormEpsilon: number;
  ropeTheta: number;
  /** Absent: frequencies as they are. */
  ropeScaling?: RopeScaling;
  /** Linear layers with a bias: Qwen2 has them at q, k and v (`qkv`). Absent: none. */
  biases?: readonly LinearWithBias[];
  /** RMSNorm of each head's query and key before they are rotated, as Qwen3 has it. Absent: no. */
  queryKeyNorm?: true;
  /** Rows of the embedding that no token has, as ranges [from, to): probability 0, in decoding and training. Absent: none. */
  maskedTokens?: readonly (readonly [from: number, to: number])[];
}

/** `qkv`: the three projections into attention; `output`: the one out of it; `mlp`: gate, up and down. */
export type LinearWithBias = 'qkv' | 'output' | 'mlp';

/** A float32 tensor in host memory, row-major. */
export interface HostTensor {
  shape: readonly number[];
  data: Float32Array;
}

/** Weights under their Hugging Face names (`model.embed_tokens.weight`, …); a linear layer is `[out, in]`, its bias `[out]`. */
export type Weights = Map<string, HostTensor>;

/**
 * Every weight of a model with its shape, in the order in which they are stored. The three projections into attention
 * follow each other, and so do their biases: each triple can be read as one tensor.
 */
export function weightShapes(config: ModelConfig): [name: string, shape: number[]][] {
  const { hiddenSize: d, intermediateSize: F, headSize: D, attentionHeads: H, keyValueHeads: K } = config;
  const shapes: [string, number[]][] = [['model.embed_tokens.weight', [config.vocabSize, d]]];
  const has = (bias: LinearWithBias): boolean => config.biases?.includes(bias) ?? false;
  for (let layer = 0; layer < config.layers; layer++) {
    const add = (name: string, ...shape: number[]) => shapes.push([`model.layers.${layer}.${name}`, shape]);
    add('input_layernorm.weight', d);
    add('self_attn.q_proj.weight', H * D, d);
    add('self_attn.k_proj.weight', K * D, d);
    add('self_attn.v_proj.weight', K * D, d);
    if (has('qkv')) {
      add('self_attn.q_proj.bias', H * D);
      add('self_attn.k_proj.bias', K * D);
      add('self_attn.v_proj.bias', K * D);
    }
    if (config.queryKeyNorm) {
      add('self_attn.q_norm.weight', D);
      add('self_attn.k_norm.weight', D);
    }
    add('self_attn.o_proj.weight', d, H * D);
    if (has('output')) add('self_attn.o_proj.bias', d);
    add('post_attention_layernorm.weight', d);
    add('mlp.gate_proj.weight', F, d);
    if (has('mlp')) add('mlp.gate_proj.bias', F);
    add('mlp.up_proj.weight', F, d);
    if (has('mlp')) add('mlp.up_proj.bias', F);
    add('mlp.down_proj.weight', d, F);
    if (has('mlp')) add('mlp.down_proj.bias', d);
  }
  shapes.push(['model.norm.weight', [d]]);
  if (!config.tieEmbeddings) shapes.push(['lm_head.weight', [config.vocabSize, d]]);
  return shapes;
}

export function parameterCount(config: ModelConfig): number {
  return weightShapes(config).reduce((sum, [, shape]) => sum + shape.reduce((a, b) => a * b, 1), 0);
}
