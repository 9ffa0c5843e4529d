import { GradusError } from '../../core/errors.ts';
import type { Json } from '../../core/json/json.ts';
import type { LoraSpec } from '../../core/schema/lora.ts';
import type { ModelConfig, Weights } from '../../core/model/config.ts';
import { readSafetensors, writeSafetensors } from '../safetensors/safetensors.ts';
import { LORA_MODULES } from '../../core/names.ts';
import { adapterShapes } from './adapter-shapes.ts';
import type { LoraAdapter } from './adapter.ts';

// The layout of PEFT (https://huggingface.co/docs/peft, developer_guides/checkpoint): two files in a folder.
export const ADAPTER_CONFIG = 'adapter_config.json';
export const ADAPTER_MODEL = 'adapter_model.safetensors';

/** `adapter_config.json`. `base` is where PEFT looks for the base model: a folder or a name. */
export function toPeftConfig({ rank, alpha, targetModules, rsLora }: LoraSpec, base: string): Json {
  return {
    peft_type: 'LORA',
    task_type: 'CAUSAL_LM',
    base_model_name_or_path: base,
    r: rank,
    lora_alpha: alpha,
    lora_dropout: 0,
    target_modules: [...targetModules],
    use_rslora: rsLora,
    bias: 'none',
    fan_in_fan_out: false,
    inference_mode: true,
    init_lora_weights: true,
    modules_to_save: null,
  };
}

/** Fields that say nothing about what the matrices mean. Any other one must ask for nothing. */
const NEUTRAL = new Set([
  'auto_mapping',
  'base_model_name_or_path',
  'inference_mode',
  'layers_pattern',
  'lora_alpha',
  // Plays no part outside training.
  'lora_dropout',
  'megatron_core',
  'peft_type',
  'peft_version',
  'qalora_group_size',
  'r',
  'revision',
  'target_modules',
  'task_type',
  'use_rslora',
]);

/**
 * The adapter in PEFT's two files, for a model of this configuration. Throws GradusError('store', 'invalid-adapter') for
 * what is no plain LoRA of linear layers, or of another model; what is wrong is named.
 */
export function readPeftAdapter(configJson: Json, model: Uint8Array, config: ModelConfig): LoraAdapter {
  const lora = fromPeftConfig(configJson, config);
  const { tensors } = readSafetensors(model);
  const weights: Weights = new Map();
  for (const [name, shape] of adapterShapes(config, lora)) {
    const tensor = tensors.get(name);
    if (!tensor) throw invalid(`${ADAPTER_MODEL} lacks ${name}`);
    if (tensor.shape.join() !== shape.join() || !(tensor.data instanceof Float32Array)) {
      throw invalid(
        `${name} is [${tensor.shape.join(', ')}], not [${shape.join(', ')}] of this model, in F32`,
      );
    }
    weights.set(name, { shape, data: tensor.data });
  }
  const more = [...tensors.keys()].find((name) => !weights.has(name));
  if (more !== undefined)
    throw invalid(`${ADAPTER_MODEL} has ${more}, which this model or LoRA does not know`);
  return { lora, weights };
}

function fromPeftConfig(json: Json, config: ModelConfig): LoraSpec {
  if (typeof json !== 'object' || json === null || Array.isArray(json)) throw invalid('it is not an object');
  const given: { readonly [key: string]: Json } = json;
  if (given['peft_type'] !== 'LORA') throw invalid(`peft_type is ${show(given['peft_type'])}, not "LORA"`);
  for (const [field, value] of Object.entries(given)) {
    // PiSSA and its like change the base, and an adapter alone does not say how.
    const plain =
      field === 'init_lora_weights' ? value === 'gaussian' || typeof value === 'boolean' : isNothing(value);
    if (!plain && !NEUTRAL.has(field)) throw invalid(`${field} is ${show(value)}, which is not supported`);
  }
  const { r, lora_alpha: alpha, use_rslora: rsLora = false, target_modules: modules } = given;
  if (typeof r !== 'number' || !Number.isInteger(r) || r < 1) throw invalid(`r is ${show(r)}`);
  if (typeof alpha !== 'number') throw invalid(`lora_alpha is ${show(alpha)}`);
  if (typeof rsLora !== 'boolean') throw invalid(`use_rslora is ${show(rsLora)}`);
  const lora: LoraSpec = { rank: r, alpha, rsLora, targetModules: targetModules(modules) };
  if (adapterShapes(config, lora).length === 0) throw invalid('no module of this model is a target');
  return lora;
}

/** In the order of LORA_MODULES: PEFT writes a set, whose order means nothing. */
function targetModules(value: Json | undefined): string[] {
  if (value === 'all-linear') return [...LORA_MODULES];
  if (!Array.isArray(value)) {
    throw invalid(`target_modules is ${show(value)}: give a list of ${LORA_MODULES.join(', ')}`);
  }
  const unknown = value.find((name) => !LORA_MODULES.some((known) => known === name));
  if (unknown !== undefined) {
    throw invalid(`target_modules has ${show(unknown)}: supported are ${LORA_MODULES.join(', ')}`);
  }
  return LORA_MODULES.filter((name) => value.includes(name));
}

/** `adapter_model.safetensors`; the same adapter gives the same bytes. */
export const writePeftModel = (config: ModelConfig, { lora, weights }: LoraAdapter): Uint8Array =>
  writeSafetensors(new Map(adapterShapes(config, lora).map(([name]) => [name, weights.get(name)!])), {
    format: 'pt',
  });

const isNothing = (value: Json): boolean =>
  value === null ||
  value === false ||
  value === 'none' ||
  (typeof value === 'object' && Object.keys(value).length === 0);

const show = (value: Json | undefined): string => JSON.stringify(value) ?? 'missing';

const invalid = (what: string): GradusError =>
  new GradusError(
    'store',
    'invalid-adapter',
    `not a LoRA adapter that can be used here: ${what}. Merge it into its model with PEFT, and import that`,
  );
