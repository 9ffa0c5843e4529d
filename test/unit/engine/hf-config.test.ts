import { expect, test } from 'vitest';
import type { Json } from '../../../core/json/json.ts';
import { fromHfConfig } from '../../../engine/hf-config.ts';
import type { ModelConfig } from '../../../core/model/config.ts';
import { toHfConfig, toHfGenerationConfig } from '../../../engine/new-model-files.ts';

const config: ModelConfig = {
  vocabSize: 512,
  hiddenSize: 128,
  intermediateSize: 352,
  layers: 4,
  attentionHeads: 4,
  keyValueHeads: 2,
  headSize: 32,
  maxPositions: 256,
  rmsNormEpsilon: 1e-5,
  ropeTheta: 10000,
  tieEmbeddings: true,
};

const changed = (fields: { [key: string]: Json }, without: string[] = []): Json => {
  const json = { ...toHfConfig(config), ...fields };
  for (const field of without) delete json[field];
  return json;
};

test('a configuration survives the way through config.json', () => {
  const text = JSON.stringify(toHfConfig(config, { bos: 1, eos: [2, 3], pad: 0 }));
  expect(fromHfConfig(JSON.parse(text) as Json)).toEqual(config);
  expect(JSON.parse(text)).toMatchObject({ bos_token_id: 1, eos_token_id: [2, 3], pad_token_id: 0 });
});

test('a token with id 0 is written, one that is not there is left out', () => {
  expect(toHfGenerationConfig({ eos: [0] })).toEqual({ do_sample: true, temperature: 1, eos_token_id: 0 });
});

test('rope_theta is read where transformers 4 and where transformers 5 put it', () => {
  expect(fromHfConfig(changed({ rope_theta: 5e5 }, ['rope_parameters'])).ropeTheta).toBe(5e5);
  const newer = changed({ rope_parameters: { rope_type: 'default', rope_theta: 1e6 } }, ['rope_theta']);
  expect(fromHfConfig(newer).ropeTheta).toBe(1e6);
  expect(fromHfConfig(changed({}, ['rope_theta', 'rope_parameters'])).ropeTheta).toBe(10000);
  expect(() => fromHfConfig(changed({ rope_theta: 5e5 }))).toThrow(/differ/);
});

test.each([
  ['max_position_embeddings', 1e8],
  ['max_position_embeddings', 1e12],
  ['num_hidden_layers', 1e9],
  ['vocab_size', 2 ** 40],
  ['hidden_size', 2 ** 40],
  ['intermediate_size', 2 ** 40],
  ['num_attention_heads', 2 ** 40],
  ['num_key_value_heads', 2 ** 40],
  ['head_dim', 2 ** 40],
])('%s of %d is refused by its name, before anything is made of it', (field, value) => {
  expect(() => fromHfConfig(changed({ [field]: value }))).toThrow(
    new RegExp(`^config.json: ${field} may be \\d+ at most, and is ${value}$`),
  );
});

test('what transformers fills in may be absent', () => {
  const old = changed({}, ['head_dim', 'num_key_value_heads', 'rms_norm_eps', 'tie_word_embeddings']);
  expect(fromHfConfig(old)).toEqual({
    ...config,
    keyValueHeads: 4,
    rmsNormEpsilon: 1e-6,
    tieEmbeddings: false,
  });
});

test.each<[string, { [key: string]: Json }, Partial<ModelConfig>]>([
  ['Qwen2', { architectures: ['Qwen2ForCausalLM'], model_type: 'qwen2' }, { biases: ['qkv'] }],
  ['Qwen3', { architectures: ['Qwen3ForCausalLM'], model_type: 'qwen3' }, { queryKeyNorm: true }],
  ['Qwen3 by its type alone', { architectures: null, model_type: 'qwen3' }, { queryKeyNorm: true }],
  ['Llama with biases', { attention_bias: true, mlp_bias: true }, { biases: ['qkv', 'output', 'mlp'] }],
  ['a window as long as the context', { sliding_window: 256, layer_types: ['sliding_attention'] }, {}],
  ['a window that is switched off', { sliding_window: 64, use_sliding_window: false }, {}],
])('%s is read', (_, fields, more) => {
  expect(fromHfConfig(changed(fields))).toEqual({ ...config, ...more });
});

test.each<[string, { [key: string]: Json }, ModelConfig['ropeScaling']]>([
  ['linear', { rope_type: 'linear', factor: 2 }, { kind: 'linear', factor: 2 }],
  ['dynamic, which changes nothing where we end,', { rope_type: 'dynamic', factor: 2 }, undefined],
  [
    'llama3',
    {
      rope_type: 'llama3',
      factor: 8,
      low_freq_factor: 1,
      high_freq_factor: 4,
      original_max_position_embeddings: 64,
    },
    { kind: 'llama3', factor: 8, lowFrequencyFactor: 1, highFrequencyFactor: 4, originalPositions: 64 },
  ],
  [
    'yarn',
    { type: 'yarn', factor: 4, original_max_position_embeddings: 64 },
    {
      kind: 'yarn',
      factor: 4,
      betaFast: 32,
      betaSlow: 1,
      originalPositions: 64,
      attentionFactor: 0.1 * Math.log(4) + 1,
      truncate: true,
    },
  ],
])('stretched contexts are read, as transformers 4 and 5 write them: %s', (_, fields, scaling) => {
  const expected = { ...config, ...(scaling && { ropeScaling: scaling }) };
  expect(fromHfConfig(changed({ rope_scaling: fields }, ['rope_parameters']))).toEqual(expected);
  expect(fromHfConfig(changed({ rope_parameters: { ...fields, rope_theta: 10000 } }))).toEqual(expected);
});

test.each([
  ['MistralForCausalLM', { architectures: ['MistralForCausalLM'], model_type: 'mistral' }],
  [
    'Qwen2ForSequenceClassification',
    { architectures: ['Qwen2ForSequenceClassification'], model_type: 'qwen2' },
  ],
  ['model_type qwen3', { model_type: 'qwen3' }],
  ['gelu', { hidden_act: 'gelu' }],
  [
    'rope_type dynamic with a longer context',
    {
      rope_parameters: {
        rope_type: 'dynamic',
        factor: 2,
        rope_theta: 1e4,
        original_max_position_embeddings: 64,
      },
    },
  ],
  ['longrope', { rope_parameters: { rope_type: 'longrope', rope_theta: 1e4 } }],
  ['partial_rotary_factor 0.5', { partial_rotary_factor: 0.5 }],
  [
    'sliding-window attention (sliding_window 64)',
    { sliding_window: 64, layer_types: ['sliding_attention'] },
  ],
  ['sliding-window attention', { sliding_window: 64, use_sliding_window: true, max_window_layers: 2 }],
])('what this engine cannot run is refused by name: %s', (name, fields: { [key: string]: Json }) => {
  expect(() => fromHfConfig(changed(fields))).toThrow(
    expect.objectContaining({ type: 'unsupported-model', message: expect.stringContaining(name) as string }),
  );
});

test.each([
  ['MixtralForCausalLM', 'mixtral', 'needs mixture-of-experts layers'],
  ['Qwen3MoeForCausalLM', 'qwen3_moe', 'take a dense model of the same makers'],
  ['MistralForCausalLM', 'mistral', 'where sliding_window is null its layers are those of Llama'],
  ['Gemma2ForCausalLM', 'gemma2', 'norms with weights around 1'],
  ['FalconMambaForCausalLM', 'falcon_mamba', 'needs recurrent layers'],
  ['LlavaForConditionalGeneration', 'llava', 'take the language model alone'],
  ['Qwen2ForSequenceClassification', 'qwen2', 'whose name ends in ForCausalLM'],
  ['LlamaForCausalLM', 'qwen3', 'the two are of different models'],
  ['NovelForCausalLM', 'novel', 'its layers are not known'],
])('a refused architecture says what is missing and what would run: %s', (name, type, why) => {
  expect(() => fromHfConfig(changed({ architectures: [name], model_type: type }))).toThrow(why);
});

test.each([
  ['vocab_size', { vocab_size: '512' }],
  ['low_freq_factor', { rope_parameters: { rope_type: 'llama3', factor: 8, rope_theta: 10000 } }],
  ['num_hidden_layers', { num_hidden_layers: 0 }],
  ['head_dim', { head_dim: 31 }],
  ['num_key_value_heads', { num_key_value_heads: 3 }],
  ['rms_norm_eps', { rms_norm_eps: -1 }],
])('a wrong %s is named', (field, fields) => {
  expect(() => fromHfConfig(changed(fields))).toThrow(
    expect.objectContaining({ type: 'invalid-config', message: expect.stringContaining(field) as string }),
  );
});
