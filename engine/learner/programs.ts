import type { Scalar, Tensor, Tensor1D, Tensor2D } from '@tensorflow/tfjs';
import { weightShapes, type ModelConfig } from '../model-config.ts';
import type { Backend } from './backend.ts';
import type { GrpoSettings, SupervisedSettings } from './contract.ts';
import { grpoLoss } from './losses/grpo.ts';
import { supervisedLoss } from './losses/supervised.ts';
import { decoderLogits } from './model/decoder.ts';
import { tokenLogprobs } from './model/token-logprobs.ts';

/** A pure function from tensors to tensors: run as it is, or traced into a graph once per shape of its inputs. */
export interface Program {
  /** Two programs with one key compute the same. */
  key: string;
  compute(inputs: Tensor[]): Tensor[];
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

/**
 * In: the weights in the order of `weightShapes`, tokens [N], targets [N], segments [B, T]. Out: log-probs [N].
 */
export function logprobProgram(backend: Backend, config: ModelConfig, temperature: number): Program {
  return {
    key: JSON.stringify(['logprobs', config, temperature]),
    compute: (inputs) => {
      const { logprobs, entropy } = forward(backend, config, inputs, temperature);
      entropy.dispose();
      return [logprobs];
    },
  };
}

/**
 * In: as above, then mask [N], weights [N] and `tokenInputs` [N] each. Out: loss [], then log-probs, entropy,
 * k3 and clipped, [N] each, then the gradient of the loss for every weight.
 */
export function trainingProgram(
  backend: Backend,
  config: ModelConfig,
  objective: SupervisedSettings | GrpoSettings,
  single: boolean,
): Program {
  const { tf } = backend;
  const names = tokenInputs(objective, single);
  const count = weightShapes(config).length;
  return {
    key: JSON.stringify(['training', config, objective, names]),
    compute: (inputs) => {
      const [mask, weights, ...rest] = inputs.slice(count + 3) as [Tensor1D, Tensor1D, ...Tensor1D[]];
      const given = Object.fromEntries(names.map((name, i) => [name, rest[i]!]));
      let metrics: Tensor[] = [];
      const loss = (...parameters: Tensor[]): Scalar => {
        const temperature = objective.kind === 'grpo' ? objective.temperature : 1;
        const model = [...parameters, ...inputs.slice(count)];
        const { logprobs, entropy } = forward(backend, config, model, temperature);
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
      const { value, grads } = tf.valueAndGrads(loss)(inputs.slice(0, count));
      return [value, ...metrics, ...grads];
    },
  };
}

function forward(backend: Backend, config: ModelConfig, inputs: Tensor[], temperature: number) {
  const names = weightShapes(config).map(([name]) => name);
  const named = new Map(names.map((name, i) => [name, inputs[i]!]));
  const [tokens, targets, segments] = inputs.slice(names.length) as [Tensor1D, Tensor1D, Tensor2D];
  const weight = (name: string) => named.get(name)!;
  const logits = decoderLogits(backend, config, weight, tokens, segments, temperature);
  return tokenLogprobs(backend, logits, targets);
}
