import { expect, test } from 'vitest';
import type { Json } from '../../../core/json.ts';
import { fromHfConfig, toHfConfig, toHfGenerationConfig } from '../../../engine/hf-config.ts';
import type { ModelConfig } from '../../../engine/model-config.ts';

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

test('what transformers fills in may be absent', () => {
  const old = changed({}, ['head_dim', 'num_key_value_heads', 'rms_norm_eps', 'tie_word_embeddings']);
  expect(fromHfConfig(old)).toEqual({
    ...config,
    keyValueHeads: 4,
    rmsNormEpsilon: 1e-6,
    tieEmbeddings: false,
  });
});

test.each([
  ['Qwen2ForCausalLM', { architectures: ['Qwen2ForCausalLM'], model_type: 'qwen2' }],
  ['gelu', { hidden_act: 'gelu' }],
  ['attention_bias', { attention_bias: true }],
  ['llama3', { rope_scaling: null, rope_parameters: { rope_type: 'llama3', rope_theta: 1e4 } }],
])('what this engine cannot run is refused by name: %s', (name, fields) => {
  expect(() => fromHfConfig(changed(fields))).toThrow(
    expect.objectContaining({ type: 'unsupported-model', message: expect.stringContaining(name) as string }),
  );
});

test('transformers 4 puts stretched contexts into rope_scaling', () => {
  const json = changed({ rope_scaling: { rope_type: 'linear', factor: 2 } }, ['rope_parameters']);
  expect(() => fromHfConfig(json)).toThrow(/rope_type linear/);
});

test.each([
  ['vocab_size', { vocab_size: '512' }],
  ['num_hidden_layers', { num_hidden_layers: 0 }],
  ['head_dim', { head_dim: 31 }],
  ['num_key_value_heads', { num_key_value_heads: 3 }],
  ['rms_norm_eps', { rms_norm_eps: -1 }],
])('a wrong %s is named', (field, fields) => {
  expect(() => fromHfConfig(changed(fields))).toThrow(
    expect.objectContaining({ type: 'invalid-config', message: expect.stringContaining(field) as string }),
  );
});
