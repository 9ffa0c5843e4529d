import { flag, invalid, isObject, positiveField, show, unsupported } from './config-fields.ts';
import type { JsonObject } from './config-fields.ts';
import { yarnAttentionFactor } from './rope.ts';
import type { RopeScaling } from '../core/model/config.ts';

/** transformers 5 has `rope_parameters`, 4 has `rope_theta` and, for stretched contexts, `rope_scaling`. */
export function ropeOf(
  json: JsonObject,
  maxPositions: number,
): { theta: number; scaling: RopeScaling | undefined } {
  const parameters = json['rope_parameters'] ?? json['rope_scaling'] ?? {};
  if (!isObject(parameters)) throw invalid('rope_parameters is not an object');
  const theta = positiveField(parameters, 'rope_theta', positiveField(json, 'rope_theta', 10_000));
  if (json['rope_theta'] != null && theta !== json['rope_theta']) {
    throw invalid('rope_theta and rope_parameters.rope_theta differ: keep the right one');
  }
  if ((parameters['partial_rotary_factor'] ?? 1) !== 1) {
    throw unsupported(`partial_rotary_factor ${show(parameters['partial_rotary_factor'])}`);
  }
  return { theta, scaling: scalingOf(parameters, maxPositions) };
}

function scalingOf(parameters: JsonObject, maxPositions: number): RopeScaling | undefined {
  const type = parameters['rope_type'] ?? parameters['type'] ?? 'default';
  const original = () => positiveField(parameters, 'original_max_position_embeddings', maxPositions);
  switch (type) {
    case 'default':
      return undefined;
    case 'dynamic':
      // It changes nothing up to the original length; where that is not where episodes end, it would.
      if (original() < maxPositions)
        throw unsupported('rope_type dynamic with a longer context than the original');
      return undefined;
    case 'linear':
      return { kind: 'linear', factor: positiveField(parameters, 'factor') };
    case 'llama3':
      return {
        kind: 'llama3',
        factor: positiveField(parameters, 'factor'),
        lowFrequencyFactor: positiveField(parameters, 'low_freq_factor'),
        highFrequencyFactor: positiveField(parameters, 'high_freq_factor'),
        originalPositions: original(),
      };
    case 'yarn': {
      const factor = positiveField(parameters, 'factor', maxPositions / original());
      const optional = (field: string) =>
        parameters[field] == null ? undefined : positiveField(parameters, field);
      return {
        kind: 'yarn',
        factor,
        betaFast: positiveField(parameters, 'beta_fast', 32),
        betaSlow: positiveField(parameters, 'beta_slow', 1),
        originalPositions: original(),
        attentionFactor: positiveField(
          parameters,
          'attention_factor',
          yarnAttentionFactor(factor, optional('mscale'), optional('mscale_all_dim')),
        ),
        truncate: flag(parameters, 'truncate', true),
      };
    }
    default:
      throw unsupported(`rope_type ${show(type)}`);
  }
}
