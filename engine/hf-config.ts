import { GradusError } from '../core/errors.ts';
import type { Json } from '../core/json.ts';
import type { ModelConfig } from './model-config.ts';

/** Ids that `generate` of other software needs to know. */
export interface SpecialTokens {
  bos?: number;
  /** Any of these ends the text. */
  eos?: readonly number[];
  pad?: number;
}

type JsonObject = { [key: string]: Json };

/**
 * Hugging Face's `config.json` of a LlamaForCausalLM. `rope_theta` is what transformers 4 reads, `rope_parameters`
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
    }),
    'generation_config.json': json(toHfGenerationConfig(tokens)),
  };
  const encoder = new TextEncoder();
  return new Map(Object.entries(texts).map(([name, text]) => [name, encoder.encode(text)]));
}

/**
 * The shape of the model that a `config.json` describes. Fields that transformers fills in with a default may be
 * absent. Throws GradusError('store', 'unsupported-model') naming what this engine cannot run, and
 * GradusError('store', 'invalid-config') for a field that is missing or of a wrong type.
 */
export function fromHfConfig(json: Json): ModelConfig {
  if (!isObject(json)) throw invalid('it is not a JSON object');
  const architectures = Array.isArray(json['architectures']) ? json['architectures'] : [];
  const name = architectures.length > 0 ? architectures.map(show).join(', ') : show(json['model_type']);
  const known = architectures.length > 0 ? name === 'LlamaForCausalLM' : name === 'llama';
  if (!known || (json['model_type'] ?? 'llama') !== 'llama') {
    throw unsupported(`architecture ${name} (model_type ${show(json['model_type'])})`);
  }
  if ((json['hidden_act'] ?? 'silu') !== 'silu') throw unsupported(`hidden_act ${show(json['hidden_act'])}`);
  for (const bias of ['attention_bias', 'mlp_bias']) {
    if (json[bias] === true) throw unsupported(`${bias} true`);
  }
  const hiddenSize = count(json, 'hidden_size');
  const attentionHeads = count(json, 'num_attention_heads');
  const config: ModelConfig = {
    vocabSize: count(json, 'vocab_size'),
    hiddenSize,
    intermediateSize: count(json, 'intermediate_size'),
    layers: count(json, 'num_hidden_layers'),
    attentionHeads,
    keyValueHeads: count(json, 'num_key_value_heads', attentionHeads),
    headSize: count(json, 'head_dim', hiddenSize / attentionHeads),
    maxPositions: count(json, 'max_position_embeddings'),
    rmsNormEpsilon: positive(json, 'rms_norm_eps', 1e-6),
    ropeTheta: ropeTheta(json),
    tieEmbeddings: flag(json, 'tie_word_embeddings', false),
  };
  if (config.headSize % 2 !== 0)
    throw invalid(`head_dim ${config.headSize} is odd, and rotary embedding needs pairs`);
  if (config.attentionHeads % config.keyValueHeads !== 0) {
    throw invalid('num_attention_heads is no multiple of num_key_value_heads');
  }
  return config;
}

/** transformers 5 has `rope_parameters`, 4 has `rope_theta` and, for stretched contexts, `rope_scaling`. */
function ropeTheta(json: JsonObject): number {
  const parameters = json['rope_parameters'] ?? json['rope_scaling'] ?? {};
  if (!isObject(parameters)) throw invalid('rope_parameters is not an object');
  const type = parameters['rope_type'] ?? parameters['type'] ?? 'default';
  if (type !== 'default') throw unsupported(`rope_type ${show(type)}`);
  const newer = positive(parameters, 'rope_theta', positive(json, 'rope_theta', 10_000));
  if (json['rope_theta'] != null && newer !== json['rope_theta']) {
    throw invalid('rope_theta and rope_parameters.rope_theta differ: keep the right one');
  }
  return newer;
}

function count(json: JsonObject, field: string, otherwise?: number): number {
  const value = json[field] ?? otherwise;
  if (typeof value === 'number' && Number.isSafeInteger(value) && value > 0) return value;
  throw invalid(`${field} must be a whole number above 0, and is ${show(value)}`);
}

function positive(json: JsonObject, field: string, otherwise: number): number {
  const value = json[field] ?? otherwise;
  if (typeof value === 'number' && Number.isFinite(value) && value > 0) return value;
  throw invalid(`${field} must be a number above 0, and is ${show(value)}`);
}

function flag(json: JsonObject, field: string, otherwise: boolean): boolean {
  const value = json[field] ?? otherwise;
  if (typeof value === 'boolean') return value;
  throw invalid(`${field} must be true or false, and is ${show(value)}`);
}

const eosOf = ({ eos = [] }: SpecialTokens): number | number[] | null =>
  eos.length === 0 ? null : eos.length === 1 ? eos[0]! : [...eos];

const isObject = (value: Json): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const show = (value: Json | undefined): string =>
  typeof value === 'string' ? value : value === undefined ? 'absent' : JSON.stringify(value);

const unsupported = (what: string): GradusError =>
  new GradusError(
    'store',
    'unsupported-model',
    `config.json: ${what} cannot be run here; use a LlamaForCausalLM`,
  );

const invalid = (what: string): GradusError =>
  new GradusError('store', 'invalid-config', `config.json: ${what}`);
