import { readFileSync } from 'node:fs';
import type { Json } from '../../../core/json/json.ts';
import { fromHfConfig } from '../../../engine/hf-config.ts';
import { ADAPTER_CONFIG, ADAPTER_MODEL, readPeftAdapter } from '../../../engine/lora/peft-format.ts';
import type { HostTensor, ModelConfig, Weights } from '../../../core/model/config.ts';
import { readSafetensors } from '../../../engine/safetensors/safetensors.ts';

// What test/parity/peft/make_fixtures.py wrote.
const file = (name: string): Uint8Array =>
  new Uint8Array(readFileSync(new URL(`../../fixtures/peft/${name}`, import.meta.url)));
export const json = (name: string): Json => JSON.parse(new TextDecoder().decode(file(name))) as Json;
export const tensors = (name: string) => readSafetensors(file(name)).tensors;

export const CASES = ['lora', 'rslora'] as const;
export type Case = (typeof CASES)[number];

export const config: ModelConfig = fromHfConfig(json('base/config.json'));
export const base = tensors('base/model.safetensors') as Weights;

export const adapterFiles = (name: Case) => ({
  configJson: json(`${name}/${ADAPTER_CONFIG}`),
  model: file(`${name}/${ADAPTER_MODEL}`),
});
export function adapterOf(name: Case) {
  const { configJson, model } = adapterFiles(name);
  return readPeftAdapter(configJson, model, config);
}

/** Tokens [2, 12] and what PyTorch makes of them. */
export function expected(name: Case) {
  const all = tensors(`${name}/expected.safetensors`);
  const under = (prefix: string): [string, HostTensor][] =>
    [...all].flatMap(([key, tensor]): [string, HostTensor][] =>
      key.startsWith(prefix) && tensor.data instanceof Float32Array
        ? [[key.slice(prefix.length), { shape: tensor.shape, data: tensor.data }]]
        : [],
    );
  return {
    tokens: all.get('tokens')!.data as Int32Array,
    logits: all.get('logits')!.data as Float32Array,
    loss: all.get('loss')!.data[0]!,
    gradients: under('gradient.'),
    merged: under('merged.'),
  };
}
export const [ROWS, LENGTH] = [2, 12];
