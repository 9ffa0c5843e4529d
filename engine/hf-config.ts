import type { Json } from '../core/json/json.ts';
import { countField, flag, invalid, isObject, positiveField, show, unsupported } from './config-fields.ts';
import { unknownArchitecture } from './architectures.ts';
import { inBrief } from './foreign-json.ts';
import type { ARCHITECTURES } from './architectures.ts';
import type { JsonObject } from './config-fields.ts';
import { ropeOf } from './hf-rope.ts';
import type { LinearWithBias, ModelConfig } from '../core/model/config.ts';

/**
 * Several times what the largest published models have. Rotary tables are made for all positions: at 2^21 of them and
 * heads of 128 they take a gigabyte.
 */
const MOST = {
  width: 2 ** 18,
  heads: 2 ** 10,
  headSize: 2 ** 12,
  positions: 2 ** 21,
  tokens: 10_000_000,
  layers: 2 ** 10,
};

/**
 * The shape of the model that a `config.json` describes: of LlamaForCausalLM, Qwen2ForCausalLM (Qwen2.5 is one) or
 * Qwen3ForCausalLM, with the defaults that transformers fills in. Fields that change nothing in inference and training
 * here (dropout, cache, initializer range) are not looked at.
 * Throws GradusError('store', 'unsupported-model') naming what this engine cannot run, and
 * GradusError('store', 'invalid-config') for a field that is missing or of a wrong type.
 */
export function fromHfConfig(json: Json): ModelConfig {
  if (!isObject(json)) throw invalid('it is not a JSON object');
  const family = familyOf(json);
  const activation = json['hidden_act'] ?? 'silu';
  if (activation !== 'silu' && activation !== 'swish') throw unsupported(`hidden_act ${show(activation)}`);
  for (const [field, plain] of [
    ['partial_rotary_factor', 1],
    ['pretraining_tp', 1],
  ] as const) {
    if ((json[field] ?? plain) !== plain) throw unsupported(`${field} ${show(json[field])}`);
  }
  const hiddenSize = countField(json, 'hidden_size', MOST.width);
  const attentionHeads = countField(json, 'num_attention_heads', MOST.heads);
  const maxPositions = countField(json, 'max_position_embeddings', MOST.positions);
  const biases = biasesOf(json, family);
  const { theta, scaling } = ropeOf(json, maxPositions);
  const config: ModelConfig = {
    vocabSize: countField(json, 'vocab_size', MOST.tokens),
    hiddenSize,
    intermediateSize: countField(json, 'intermediate_size', MOST.width),
    layers: countField(json, 'num_hidden_layers', MOST.layers),
    attentionHeads,
    keyValueHeads: countField(json, 'num_key_value_heads', MOST.heads, attentionHeads),
    headSize: countField(
      json,
      'head_dim',
      MOST.headSize,
      family === 'qwen3' ? 128 : hiddenSize / attentionHeads,
    ),
    maxPositions,
    rmsNormEpsilon: positiveField(json, 'rms_norm_eps', 1e-6),
    ropeTheta: theta,
    tieEmbeddings: flag(json, 'tie_word_embeddings', false),
    ...(scaling && { ropeScaling: scaling }),
    ...(biases.length > 0 && { biases }),
    ...(family === 'qwen3' && { queryKeyNorm: true }),
  };
  refuseSlidingWindow(json, config);
  if (config.headSize % 2 !== 0)
    throw invalid(`head_dim ${config.headSize} is odd, and rotary embedding needs pairs`);
  if (config.attentionHeads % config.keyValueHeads !== 0) {
    throw invalid('num_attention_heads is no multiple of num_key_value_heads');
  }
  return config;
}

/** Model types with the one class of each that is a language model. */
type Family = 'llama' | 'qwen2' | 'qwen3';
const FAMILIES: Record<Family, (typeof ARCHITECTURES)[number]> = {
  llama: 'LlamaForCausalLM',
  qwen2: 'Qwen2ForCausalLM',
  qwen3: 'Qwen3ForCausalLM',
};

function familyOf(json: JsonObject): Family {
  const architectures = Array.isArray(json['architectures']) ? json['architectures'] : [];
  const type = json['model_type'];
  const named = architectures.length > 0 ? architectures.map(show).join(', ') : show(type);
  const found = (Object.keys(FAMILIES) as Family[]).find(
    (family) =>
      (type ?? family) === family &&
      (architectures.length === 0 ? type === family : named === FAMILIES[family]),
  );
  if (found === undefined) throw unknownArchitecture(inBrief(named), inBrief(show(type)));
  return found;
}

function biasesOf(json: JsonObject, family: Family): LinearWithBias[] {
  if (family === 'qwen2') return ['qkv'];
  const attention = flag(json, 'attention_bias', false);
  const mlp = family === 'llama' && flag(json, 'mlp_bias', false);
  return [...(attention ? (['qkv', 'output'] as const) : []), ...(mlp ? (['mlp'] as const) : [])];
}

/** A window that is as long as the context hides nothing; a shorter one would. */
function refuseSlidingWindow(json: JsonObject, { layers, maxPositions }: ModelConfig): void {
  const window = json['sliding_window'];
  if (typeof window === 'number' && window >= maxPositions) return;
  const types = json['layer_types'];
  const named = Array.isArray(types) && types.some((type) => type !== 'full_attention');
  const switched =
    json['use_sliding_window'] === true &&
    countField(json, 'max_window_layers', Number.MAX_SAFE_INTEGER, 28) < layers;
  if (named || (types == null && switched)) {
    throw unsupported(`sliding-window attention (sliding_window ${show(window)})`);
  }
}
