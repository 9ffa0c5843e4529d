import type { Scalar, Tensor, Tensor1D, Tensor2D } from '@tensorflow/tfjs';
import type { TensorflowBackend } from '../tensorflow/backend.ts';
import { criticShapes } from '../critic.ts';
import { valueLoss } from '../losses/value.ts';
import { decoderHidden } from '../model/decoder.ts';
import { rowsByCore, type ComputedModel, type RowsOfCore, type Program } from './program.ts';

/** In: the critic's parameters, and what `rowInputs` gives. Out: V [N] of the state before each target. */
export function valueProgram(backend: TensorflowBackend, { config, compute }: ComputedModel): Program {
  return {
    key: JSON.stringify(['values', config, compute.precision]),
    precision: compute.precision,
    compute: (inputs) => {
      const count = criticShapes(config).length;
      const { parts } = rowsByCore(backend, inputs.slice(count), 0);
      return [valuesOf(backend, { config, compute }, inputs.slice(0, count), parts)];
    },
  };
}

/**
 * In: as above, then mask [N], weights [N], returns [N] and with a clip the values before the step [N], 0 where the mask
 * is. Out: loss [], then V and what a clip bound, [N] each, then the gradient of the loss for every parameter.
 */
export function criticProgram(
  backend: TensorflowBackend,
  { config, compute }: ComputedModel,
  clip: number,
): Program {
  const { tf } = backend;
  const { precision, gradientCheckpointing } = compute;
  const count = criticShapes(config).length;
  return {
    key: JSON.stringify(['critic', config, precision, gradientCheckpointing, clip]),
    precision,
    compute: (inputs) => {
      const { parts, perToken } = rowsByCore(backend, inputs.slice(count), 0);
      const [mask, weights, returns, values] = perToken;
      let measured: Tensor[] = [];
      const loss = (...parameters: Tensor[]): Scalar => {
        const everywhere = valuesOf(backend, { config, compute }, parameters, parts);
        const predicted = tf.where<Tensor1D>(tf.cast(mask!, 'bool'), everywhere, tf.zerosLike(everywhere));
        const result = valueLoss(tf, clip, { predicted, weights: weights!, returns: returns!, values });
        measured = [tf.keep(predicted), tf.keep(result.clipped)];
        return result.loss;
      };
      const { value, grads } = tf.valueAndGrads(loss)(inputs.slice(0, count));
      return [value, ...measured, ...grads];
    },
  };
}

/**
 * Of a reward model. In: as above, then mask [N] and the slopes of its loss by each value [N], 0 where the mask is. Out as
 * above: of Σ slope · V, whose gradient is that of the loss, with nothing bound by a clip.
 */
export function slopeProgram(backend: TensorflowBackend, { config, compute }: ComputedModel): Program {
  const { tf } = backend;
  const { precision, gradientCheckpointing } = compute;
  const count = criticShapes(config).length;
  return {
    key: JSON.stringify(['reward-model', config, precision, gradientCheckpointing]),
    precision,
    compute: (inputs) => {
      const { parts, perToken } = rowsByCore(backend, inputs.slice(count), 0);
      const [mask, slopes] = perToken;
      let measured: Tensor[] = [];
      const loss = (...parameters: Tensor[]): Scalar => {
        const everywhere = valuesOf(backend, { config, compute }, parameters, parts);
        const predicted = tf.where<Tensor1D>(tf.cast(mask!, 'bool'), everywhere, tf.zerosLike(everywhere));
        measured = [tf.keep(predicted), tf.keep(tf.zerosLike(predicted))];
        return tf.sum(tf.mul(predicted, slopes!));
      };
      const { value, grads } = tf.valueAndGrads(loss)(inputs.slice(0, count));
      return [value, ...measured, ...grads];
    },
  };
}

/** V [N], in float32 whatever the precision of the products before it. */
function valuesOf(
  backend: TensorflowBackend,
  { config, compute }: ComputedModel,
  inputs: Tensor[],
  parts: readonly RowsOfCore[],
): Tensor1D {
  const { tf } = backend;
  const parameters = new Map(criticShapes(config).map(([name], i) => [name, inputs[i]!]));
  const [weight, bias] = ['value_head.weight', 'value_head.bias'].map((name) => parameters.get(name)!);
  const network = new Map([...parameters].filter(([name]) => !name.startsWith('value_head.')));
  const values = parts.map(({ tokens, segments, shared }) => {
    const { hidden } = decoderHidden(backend, config, network, tokens, segments, {
      temperature: 1,
      gradientCheckpointing: compute.gradientCheckpointing,
      loraScale: undefined,
      shared,
    });
    return tf.add<Tensor1D>(tf.sum(tf.mul(hidden, weight as Tensor2D), -1), bias!);
  });
  return values.length === 1 ? values[0]! : tf.concat(values);
}
