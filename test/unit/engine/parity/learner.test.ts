import type { Scalar, Tensor, Tensor1D, Tensor2D } from '@tensorflow/tfjs';
import { beforeAll, expect, test } from 'vitest';
import { loadTensorflowBackend } from '../../../../engine/learner/tensorflow/backend.ts';
import type { TensorflowBackend } from '../../../../engine/learner/tensorflow/backend.ts';
import { decoderHidden } from '../../../../engine/learner/model/decoder.ts';
import { linear } from '../../../../engine/learner/model/linear.ts';
import { tokenLogprobs } from '../../../../engine/learner/model/token-logprobs.ts';
import type { ModelConfig } from '../../../../core/model/config.ts';
import { tokenMask } from '../../../../engine/token-mask.ts';
import { cases, fixture, largestDifference } from './fixture.ts';

let backend: TensorflowBackend;
beforeAll(async () => {
  backend = await loadTensorflowBackend('cpu');
});

/** Hidden states [T, d] and head [V, d]. */
function hiddenOf(
  config: ModelConfig,
  names: readonly string[],
  weights: readonly Tensor[],
  tokens: Tensor1D,
  segments: Tensor2D,
): { hidden: Tensor2D; head: Tensor2D } {
  const parameters = new Map(names.map((name, i) => [name, weights[i]!]));
  const options = { temperature: 1, gradientCheckpointing: false, loraScale: undefined };
  return decoderHidden(backend, config, parameters, tokens, segments, options);
}

test.each(cases)('%s: the learner gives the logits, log-probs and gradients of PyTorch', async (name) => {
  const { tf } = backend;
  const { config, weights, tokens, logits, logprobs, gradients } = await fixture(name);
  const names = [...weights.keys()];
  const mask = tokenMask(config);
  const results = tf.tidy(() => {
    const tensors = names.map((each) => {
      const { shape, data } = weights.get(each)!;
      return tf.tensor(data, [...shape]);
    });
    // What gradients are taken through must outlive the forward pass.
    const ids = tf.tensor1d(tokens, 'int32');
    const targets = tf.tensor1d(tokens.slice(1), 'int32');
    const segments = tf.zeros([1, tokens.length], 'int32') as Tensor2D;
    const logprobsOf = (hidden: Tensor2D, head: Tensor2D): Tensor1D => {
      const predicting = tf.slice(hidden, [0, 0], [tokens.length - 1, config.hiddenSize]);
      return tokenLogprobs(backend, predicting, head, targets, { mask }).logprobs;
    };
    const nll = (...trained: Tensor[]): Scalar => {
      const { hidden, head } = hiddenOf(config, names, trained, ids, segments);
      return tf.neg(tf.mean(logprobsOf(hidden, head))) as Scalar;
    };
    const { hidden, head } = hiddenOf(config, names, tensors, ids, segments);
    return {
      logits: mask ? tf.add(linear(backend, hidden, head), tf.tensor1d(mask)) : linear(backend, hidden, head),
      logprobs: logprobsOf(hidden, head),
      gradients: tf.grads(nll)(tensors),
    };
  });
  expect(largestDifference(results.logits.dataSync(), logits)).toBeLessThan(1e-4);
  expect(largestDifference(results.logprobs.dataSync(), logprobs)).toBeLessThan(1e-4);
  expect([...gradients.keys()].toSorted()).toEqual(names.toSorted());
  for (const [i, gradient] of results.gradients.entries()) {
    const expected = gradients.get(names[i]!)!;
    const largest = expected.reduce((max, value) => Math.max(max, Math.abs(value)), 0);
    // Adding the same to every key moves no attention: without normed heads or rotation of it the exact gradient of a
    // key's bias is zero, and what PyTorch reports of it is rounding.
    const floor = names[i]!.endsWith('k_proj.bias') ? 1e-4 : 0;
    const difference = largestDifference(gradient.dataSync(), expected);
    expect({ name: names[i], ok: difference <= 1e-3 * Math.max(largest, floor) }).toEqual({
      name: names[i],
      ok: true,
    });
  }
  tf.dispose([results.logits, results.logprobs, ...results.gradients]);
});
