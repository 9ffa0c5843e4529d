import { describe, expect, it } from 'vitest';
import type { Json } from '../../../../core/json/json.ts';
import { adapterShapes } from '../../../../engine/lora/adapter-shapes.ts';
import { readPeftAdapter, toPeftConfig, writePeftModel } from '../../../../engine/lora/peft-format.ts';
import { readSafetensors, writeSafetensors } from '../../../../engine/safetensors/safetensors.ts';
import { adapterFiles, adapterOf, CASES, config } from '../../../support/engine/peft-fixtures.ts';

describe("an adapter in PEFT's layout", () => {
  it.each(CASES)('comes back as it was written: %s', (name) => {
    const adapter = adapterOf(name);
    const written = writePeftModel(config, adapter);
    const again = readPeftAdapter(toPeftConfig(adapter.lora, 'sha256:0'), written, config);
    expect(again).toEqual(adapter);
    expect(Buffer.from(writePeftModel(config, again)).equals(Buffer.from(written))).toBe(true);
  });

  it.each(CASES)('has the names and shapes that PEFT gives: %s', (name) => {
    const theirs = readSafetensors(adapterFiles(name).model).tensors;
    const ours = adapterShapes(config, adapterOf(name).lora);
    expect(new Map(ours)).toEqual(new Map([...theirs].map(([key, { shape }]) => [key, shape])));
  });

  it('reads "all-linear" as every linear layer of the decoder', () => {
    const { configJson, model } = adapterFiles('lora');
    const all = { ...(configJson as Record<string, Json>), target_modules: 'all-linear' };
    expect(readPeftAdapter(all, model, config)).toEqual(adapterOf('lora'));
  });
});

describe('is refused by name', () => {
  const { configJson, model } = adapterFiles('rslora');
  const refuses = (what: string, fields: Record<string, Json>, bytes = model, to = config) =>
    expect(() => readPeftAdapter({ ...(configJson as Record<string, Json>), ...fields }, bytes, to)).toThrow(
      what,
    );

  it.each<[string, Record<string, Json>]>([
    ['use_dora', { use_dora: true }],
    ['bias', { bias: 'all' }],
    ['modules_to_save', { modules_to_save: ['lm_head'] }],
    ['rank_pattern', { rank_pattern: { q_proj: 2 } }],
    ['layers_to_transform', { layers_to_transform: [0] }],
    ['init_lora_weights', { init_lora_weights: 'pissa' }],
    ['some_later_invention', { some_later_invention: { strength: 2 } }],
    ['peft_type', { peft_type: 'IA3' }],
    ['target_modules', { target_modules: ['embed_tokens'] }],
    ['target_modules', { target_modules: '.*proj' }],
    ['lora_alpha', { lora_alpha: null }],
    ['r is 0', { r: 0 }],
  ])('%s', (name, fields) => {
    refuses(name, fields);
  });

  it('a matrix that is missing, of another model, or too many', () => {
    refuses('lacks base_model.model.model.layers.0.self_attn.k_proj.lora_A.weight', {
      target_modules: ['q_proj', 'k_proj'],
    });
    refuses('v_proj', { target_modules: ['q_proj'] });
    refuses('not [3, 64]', {}, model, { ...config, hiddenSize: 64 });
    const { tensors } = readSafetensors(model);
    const [first] = tensors.keys();
    tensors.delete(first!);
    refuses(first!, {}, writeSafetensors(tensors));
  });
});
