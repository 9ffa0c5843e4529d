import type { Json } from '../core/json/json.ts';
import type { JsonObject } from './config-fields.ts';
import type { ModelConfig } from '../core/model/config.ts';

/** Ids that `generate` of other software needs to know. */
export interface SpecialTokens {
  bos?: number;
  /** Any of these ends the text. */
  eos?: readonly number[];
  pad?: number;
}

/**
 * Hugging Face's `config.json` of a new model, a LlamaForCausalLM. (A model that was brought keeps its own.) `rope_theta` is what transformers 4 reads, `rope_parameters`
 * what transformers 5 writes; `torch_dtype` and `dtype` likewise.
 */
export function toHfConfig(config: ModelConfig, tokens: SpecialTokens = {}): JsonObject {
  return {
    architectures: ['LlamaForCausalLM'],
    model_type: 'llama',
    vocab_size: config.vocabSize,
    hidden_size: config.hiddenSize,
    intermediate_size: config.intermediateSize,
    num_hidden_layers: config.layers,
    num_attention_heads: config.attentionHeads,
    num_key_value_heads: config.keyValueHeads,
    head_dim: config.headSize,
    max_position_embeddings: config.maxPositions,
    rms_norm_eps: config.rmsNormEpsilon,
    rope_theta: config.ropeTheta,
    rope_parameters: { rope_type: 'default', rope_theta: config.ropeTheta },
    tie_word_embeddings: config.tieEmbeddings,
    hidden_act: 'silu',
    attention_bias: false,
    mlp_bias: false,
    attention_dropout: 0,
    torch_dtype: 'float32',
    dtype: 'float32',
    bos_token_id: tokens.bos ?? null,
    eos_token_id: eosOf(tokens),
    pad_token_id: tokens.pad ?? null,
    use_cache: true,
  };
}

/** `generation_config.json`: sampling as the policy was trained, at temperature 1. */
export function toHfGenerationConfig(tokens: SpecialTokens = {}): JsonObject {
  const ids = Object.entries({
    bos_token_id: tokens.bos,
    eos_token_id: eosOf(tokens),
    pad_token_id: tokens.pad,
  });
  return {
    do_sample: true,
    temperature: 1,
    ...Object.fromEntries(ids.filter((entry): entry is [string, number | number[]] => entry[1] != null)),
  };
}

/** The small files of a new model, by name, as transformers wants them. */
export function newModelFiles(
  config: ModelConfig,
  tokenizerJson: string,
  tokens: SpecialTokens = {},
): Map<string, Uint8Array> {
  const json = (value: Json) => `${JSON.stringify(value, null, 2)}\n`;
  const texts = {
    'config.json': json(toHfConfig(config, tokens)),
    'tokenizer.json': tokenizerJson,
    'tokenizer_config.json': json({
      tokenizer_class: 'PreTrainedTokenizerFast',
      model_max_length: config.maxPositions,
      gradus_dialect: { name: 'gradus' },
    }),
    'generation_config.json': json(toHfGenerationConfig(tokens)),
  };
  const encoder = new TextEncoder();
  return new Map(Object.entries(texts).map(([name, text]) => [name, encoder.encode(text)]));
}

const eosOf = ({ eos = [] }: SpecialTokens): number | number[] | null =>
  eos.length === 0 ? null : eos.length === 1 ? eos[0]! : [...eos];
