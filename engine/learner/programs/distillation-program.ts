import type { Scalar, Tensor, Tensor1D } from '@tensorflow/tfjs';
import { loraScale, parameterShapes } from '../../lora/adapter-shapes.ts';
import { weightShapes, type ModelConfig } from '../../../core/model/config.ts';
import { tokenMask } from '../../token-mask.ts';
import type { TensorflowBackend } from '../tensorflow/backend.ts';
import type { DistributionLoss } from '../losses/loss.ts';
import { decoderHidden } from '../model/decoder.ts';
import { divergenceFrom, mergedTeachers } from '../model/divergence.ts';
import { product } from '../model/linear.ts';
import { rowsByCore, type ComputedModel, type RowsOfCore, type Program } from './program.ts';

/**
 * In: frozen and trained parameters of the student, those of each teacher, what `rowInputs` gives, mask
 * [N], weights [N] and each teacher's share [N]. Out: loss [], then the student's log-probs and entropy, the divergence
 * and zeros, [N] each, then the gradient of the loss for every trained parameter.
 */
export function distillationProgram(
  backend: TensorflowBackend,
  model: ComputedModel,
  teachers: readonly ModelConfig[],
  minimized: DistributionLoss,
): Program {
  const { tf } = backend;
  const { config, lora, compute } = model;
  const { temperature } = minimized.from;
  const shapes = parameterShapes(model);
  const frozen = shapes.frozen.length;
  const count = frozen + shapes.trained.length;
  const parametersOf = teachers.map((teacher) => weightShapes(teacher));
  const all = parametersOf.reduce((sum, { length }) => sum + length, count);
  return {
    key: JSON.stringify([
      'distillation',
      config,
      lora,
      compute.precision,
      compute.gradientCheckpointing,
      teachers,
      minimized.key,
    ]),
    precision: compute.precision,
    compute: (inputs) => {
      const { parts, perToken } = rowsByCore(backend, inputs.slice(all), 0);
      const [mask, weights, ...shares] = perToken as [Tensor1D, Tensor1D, ...Tensor1D[]];
      const sharesOf = shares.map((share) => tf.split<Tensor1D>(share, parts.length));
      // What has no gradient is computed before any is taken: nothing of it is kept.
      const logprobsOf = (teacher: ModelConfig, named: ReadonlyMap<string, Tensor>, part: RowsOfCore) =>
        tf.tidy(() => {
          const { hidden, head } = hiddenOf(backend, { config: teacher, compute }, named, part, temperature);
          const logits = product(backend, hidden, head, false, true, true);
          const low = tokenMask(teacher);
          return tf.logSoftmax(low === undefined ? logits : tf.add<typeof logits>(logits, tf.tensor1d(low)));
        });
      const taught = parts.map((part, at) =>
        tf.tidy(() => {
          let from = count;
          return mergedTeachers(
            backend,
            teachers.map((teacher, t) => {
              const tensors = inputs.slice(from, (from += parametersOf[t]!.length));
              const named = new Map(parametersOf[t]!.map(([name], i) => [name, tensors[i]!]));
              return { logprobs: logprobsOf(teacher, named, part), share: sharesOf[t]![at]! };
            }),
            minimized.divergence,
          );
        }),
      );
      let metrics: Tensor[] = [];
      const loss = (...trained: Tensor[]): Scalar => {
        const tensors = [...inputs.slice(0, frozen), ...trained];
        const named = new Map([...shapes.frozen, ...shapes.trained].map(([name], i) => [name, tensors[i]!]));
        const results = parts.map((part, at) => {
          const student = hiddenOf(backend, model, named, part, temperature);
          const options = { ...student, mask: tokenMask(config), frozen: lora !== undefined };
          return divergenceFrom(backend, taught[at]!, options, part.targets, minimized.divergence);
        });
        const joined = (name: 'divergence' | 'logprobs' | 'entropy') => {
          const values = tf.concat(results.map((result) => result[name]));
          return tf.where<Tensor1D>(tf.cast(mask, 'bool'), values, tf.zerosLike(values));
        };
        const divergence = joined('divergence');
        metrics = [joined('logprobs'), joined('entropy'), divergence, tf.zerosLike(divergence)].map(
          (tensor) => tf.keep(tensor),
        );
        results.forEach(({ logprobs, entropy }) => tf.dispose([logprobs, entropy]));
        return tf.sum(tf.mul(divergence, weights));
      };
      const { value, grads } = tf.valueAndGrads(loss)(inputs.slice(frozen, count));
      return [value, ...metrics, ...grads];
    },
  };
}

const hiddenOf = (
  backend: TensorflowBackend,
  { config, lora, compute }: ComputedModel,
  parameters: ReadonlyMap<string, Tensor>,
  { tokens, segments, shared }: RowsOfCore,
  temperature: number,
) =>
  decoderHidden(backend, config, parameters, tokens, segments, {
    temperature,
    gradientCheckpointing: compute.gradientCheckpointing,
    loraScale: lora && loraScale(lora),
    shared,
  });
