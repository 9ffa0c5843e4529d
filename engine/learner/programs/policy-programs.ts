import type { Scalar, Tensor, Tensor1D } from '@tensorflow/tfjs';
import type { OfSamples } from '../../../core/algorithms/objective.ts';
import { loraScale, parameterShapes } from '../../lora/adapter-shapes.ts';
import { tokenMask } from '../../token-mask.ts';
import { DEFAULT_COMPUTE } from '../contract.ts';
import type { TokenLoss } from '../losses/loss.ts';
import { decoderHidden } from '../model/decoder.ts';
import { tokenLogprobs } from '../model/token-logprobs.ts';
import type { TensorflowBackend } from '../tensorflow/backend.ts';
import { rowsByCore } from './program.ts';
import type { RowsOfCore, PolicyModel, Program } from './program.ts';

/**
 * In: frozen and trained parameters, what `rowInputs` gives, and with top-k the ids that each target
 * was sampled among [N, topK], all −1 where nothing was cut. Out: log-probs [N].
 */
export function logprobProgram(backend: TensorflowBackend, model: PolicyModel, from: OfSamples): Program {
  const { config, lora, compute = DEFAULT_COMPUTE } = model;
  return {
    key: JSON.stringify(['logprobs', config, lora, compute.precision, from]),
    precision: compute.precision,
    compute: (inputs) => {
      const { frozen, trained } = parameterShapes(model);
      const count = frozen.length + trained.length;
      const { parts } = rowsByCore(backend, inputs.slice(count), from.topK);
      const { logprobs, entropy } = forward(backend, model, inputs.slice(0, count), parts, from.temperature);
      entropy.dispose();
      return [logprobs];
    },
  };
}

/**
 * In: as above, then mask [N], weights [N] and what the loss `reads` [N] each, all of them 0 where the mask is. Out: loss [], then log-probs, entropy,
 * k3 and clipped, [N] each, then the gradient of the loss for every trained parameter.
 */
export function trainingProgram(
  backend: TensorflowBackend,
  model: PolicyModel,
  minimized: Pick<TokenLoss, 'key' | 'from' | 'reads' | 'entropyBonus' | 'compute'>,
  single: boolean,
): Program {
  const { tf } = backend;
  const { config, lora, compute = DEFAULT_COMPUTE } = model;
  const { precision, gradientCheckpointing } = compute;
  const names = minimized.reads(single);
  const { from, entropyBonus } = minimized;
  const { temperature, topK } = from;
  const shapes = parameterShapes(model);
  const frozen = shapes.frozen.length;
  const count = frozen + shapes.trained.length;
  return {
    key: JSON.stringify(['training', config, lora, precision, gradientCheckpointing, minimized.key, names]),
    precision,
    compute: (inputs) => {
      const { parts, perToken } = rowsByCore(backend, inputs.slice(count), topK);
      const [mask, weights, ...rest] = perToken as [Tensor1D, Tensor1D, ...Tensor1D[]];
      const given = Object.fromEntries(names.map((name, i) => [name, rest[i]!]));
      let metrics: Tensor[] = [];
      const loss = (...trained: Tensor[]): Scalar => {
        const parameters = [...inputs.slice(0, frozen), ...trained];
        const { logprobs, entropy } = forward(
          backend,
          model,
          parameters,
          parts,
          temperature,
          entropyBonus !== 0,
        );
        // Where nothing counts every log-prob is 0, as are the inputs, so that no exponential can overflow.
        const counted = tf.where<Tensor1D>(tf.cast(mask, 'bool'), logprobs, tf.zerosLike(logprobs));
        const result = minimized.compute(tf, { ...given, logprobs: counted, weights });
        metrics = [tf.keep(counted), tf.keep(entropy), tf.keep(result.kl), tf.keep(result.clipped)];
        if (entropyBonus === 0) return result.loss;
        return tf.sub(result.loss, tf.mul(tf.sum(tf.mul(entropy, weights)), entropyBonus));
      };
      const { value, grads } = tf.valueAndGrads(loss)(inputs.slice(frozen, count));
      return [value, ...metrics, ...grads];
    },
  };
}

/** Log-probs and entropy [N], which has a gradient where that is asked for; `inputs` are the parameters, frozen ones first. */
function forward(
  backend: TensorflowBackend,
  model: PolicyModel,
  inputs: Tensor[],
  parts: readonly RowsOfCore[],
  temperature: number,
  entropyGradient = false,
): { logprobs: Tensor1D; entropy: Tensor1D } {
  const { tf } = backend;
  const { config, lora, compute = DEFAULT_COMPUTE } = model;
  const { frozen, trained } = parameterShapes(model);
  const parameters = new Map([...frozen, ...trained].map(([name], i) => [name, inputs[i]!]));
  const mask = tokenMask(config);
  const results = parts.map(({ tokens, targets, segments, shared, kept }) => {
    const { hidden, head } = decoderHidden(backend, config, parameters, tokens, segments, {
      temperature,
      gradientCheckpointing: compute.gradientCheckpointing,
      loraScale: lora && loraScale(lora),
      shared,
    });
    const frozen = lora !== undefined;
    return tokenLogprobs(backend, hidden, head, targets, { mask, kept, frozen, entropyGradient });
  });
  if (results.length === 1) return results[0]!;
  const entropies = results.map(({ entropy }) => entropy);
  const entropy = tf.concat(entropies);
  if (!entropyGradient) {
    tf.keep(entropy);
    tf.dispose(entropies);
  }
  return { logprobs: tf.concat(results.map(({ logprobs }) => logprobs)), entropy };
}
