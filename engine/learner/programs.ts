import type { Scalar, Tensor, Tensor1D, Tensor2D } from '@tensorflow/tfjs';
import type { LoraSpec } from '../../core/spec.ts';
import { loraScale, parameterShapes } from '../lora/adapter-shapes.ts';
import type { ModelConfig } from '../model-config.ts';
import type { Backend } from './backend.ts';
import {
  DEFAULT_COMPUTE,
  type ComputeSettings,
  type GrpoSettings,
  type SupervisedSettings,
} from './contract.ts';
import { grpoLoss } from './losses/grpo.ts';
import { supervisedLoss } from './losses/supervised.ts';
import { decoderHidden } from './model/decoder.ts';
import { tokenLogprobs } from './model/token-logprobs.ts';
import type { Precision } from './runner.ts';

/** A pure function from tensors to tensors: run as it is, or traced into a graph once per shape of its inputs. */
export interface Program {
  /** Two programs with one key compute the same. */
  key: string;
  precision: Precision;
  compute(inputs: Tensor[]): Tensor[];
}

/** What is computed, and how. */
export interface PolicyModel {
  config: ModelConfig;
  lora?: LoraSpec | undefined;
  compute?: Pick<ComputeSettings, 'precision' | 'gradientCheckpointing'> | undefined;
}

/** Per-token inputs of the training program besides `mask` and `weights`, in the order in which it takes them. */
export type TokenInput = 'advantages' | 'old' | 'rollout' | 'reference';

/** The token inputs that an objective reads. `single`: the step has one update, so the old policy is the current one. */
export function tokenInputs(objective: SupervisedSettings | GrpoSettings, single: boolean): TokenInput[] {
  if (objective.kind === 'supervised') return [];
  const inputs: TokenInput[] = ['advantages'];
  if (!single) inputs.push('old');
  if (objective.importanceCap > 0) inputs.push('rollout');
  if (objective.beta > 0) inputs.push('reference');
  return inputs;
}

/** In: frozen and trained parameters, tokens [N], targets [N], segments [B, T]. Out: log-probs [N]. */
export function logprobProgram(backend: Backend, model: PolicyModel, temperature: number): Program {
  const { config, lora, compute = DEFAULT_COMPUTE } = model;
  return {
    key: JSON.stringify(['logprobs', config, lora, compute.precision, temperature]),
    precision: compute.precision,
    compute: (inputs) => {
      const { logprobs, entropy } = forward(backend, model, inputs, temperature);
      entropy.dispose();
      return [logprobs];
    },
  };
}

/**
 * In: as above, then mask [N], weights [N] and `tokenInputs` [N] each. Out: loss [], then log-probs, entropy,
 * k3 and clipped, [N] each, then the gradient of the loss for every trained parameter.
 */
export function trainingProgram(
  backend: Backend,
  model: PolicyModel,
  objective: SupervisedSettings | GrpoSettings,
  single: boolean,
): Program {
  const { tf } = backend;
  const { config, lora, compute = DEFAULT_COMPUTE } = model;
  const { precision, gradientCheckpointing } = compute;
  const names = tokenInputs(objective, single);
  const shapes = parameterShapes(model);
  const frozen = shapes.frozen.length;
  const count = frozen + shapes.trained.length;
  return {
    key: JSON.stringify(['training', config, lora, precision, gradientCheckpointing, objective, names]),
    precision,
    compute: (inputs) => {
      const [mask, weights, ...rest] = inputs.slice(count + 3) as [Tensor1D, Tensor1D, ...Tensor1D[]];
      const given = Object.fromEntries(names.map((name, i) => [name, rest[i]!]));
      let metrics: Tensor[] = [];
      const loss = (...trained: Tensor[]): Scalar => {
        const temperature = objective.kind === 'grpo' ? objective.temperature : 1;
        const everything = [...inputs.slice(0, frozen), ...trained, ...inputs.slice(count)];
        const { logprobs, entropy } = forward(backend, model, everything, temperature);
        // Where nothing counts every log-prob is 0, so that no exponential of it can overflow.
        const counted = tf.mul<Tensor1D>(logprobs, mask);
        if (objective.kind === 'supervised') {
          metrics = [tf.keep(counted), entropy, tf.keep(tf.zerosLike(mask)), tf.keep(tf.zerosLike(mask))];
          return supervisedLoss(tf, counted, weights);
        }
        const advantages = given['advantages']!;
        const result = grpoLoss(tf, objective, { ...given, advantages, logprobs: counted, weights });
        metrics = [tf.keep(counted), entropy, tf.keep(result.kl), tf.keep(result.clipped)];
        return result.loss;
      };
      const { value, grads } = tf.valueAndGrads(loss)(inputs.slice(frozen, count));
      return [value, ...metrics, ...grads];
    },
  };
}

function forward(backend: Backend, model: PolicyModel, inputs: Tensor[], temperature: number) {
  const { config, lora, compute = DEFAULT_COMPUTE } = model;
  const { frozen, trained } = parameterShapes(model);
  const shapes = [...frozen, ...trained];
  const parameters = new Map(shapes.map(([name], i) => [name, inputs[i]!]));
  const [tokens, targets, segments] = inputs.slice(shapes.length) as [Tensor1D, Tensor1D, Tensor2D];
  const { hidden, head } = decoderHidden(backend, config, parameters, tokens, segments, {
    temperature,
    gradientCheckpointing: compute.gradientCheckpointing,
    loraScale: lora ? loraScale(lora) : 0,
  });
  return tokenLogprobs(backend, hidden, head, targets);
}
