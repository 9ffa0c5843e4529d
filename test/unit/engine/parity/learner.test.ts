import type { Scalar, Tensor, Tensor1D, Tensor2D } from '@tensorflow/tfjs';
import { beforeAll, expect, test } from 'vitest';
import { loadBackend } from '../../../../engine/learner/backend.ts';
import type { Backend } from '../../../../engine/learner/backend.ts';
import { decoderLogits } from '../../../../engine/learner/model/decoder.ts';
import { tokenLogprobs } from '../../../../engine/learner/model/token-logprobs.ts';
import type { ModelConfig } from '../../../../engine/model-config.ts';
import { cases, fixture, largestDifference } from './fixture.ts';

let backend: Backend;
beforeAll(async () => {
  backend = await loadBackend('cpu');
});

function logitsOf(
  config: ModelConfig,
  names: readonly string[],
  weights: readonly Tensor[],
  tokens: Tensor1D,
  segments: Tensor2D,
): Tensor2D {
  const parameters = new Map(names.map((name, i) => [name, weights[i]!]));
  const options = { temperature: 1, gradientCheckpointing: false, loraScale: 0 };
  return decoderLogits(backend, config, parameters, tokens, segments, options);
}

test.each(cases)('%s: the learner gives the logits, log-probs and gradients of PyTorch', async (name) => {
  const { tf } = backend;
  const { config, weights, tokens, logits, logprobs, gradients } = await fixture(name);
  const names = [...weights.keys()];
  const results = tf.tidy(() => {
    const tensors = names.map((each) => {
      const { shape, data } = weights.get(each)!;
      return tf.tensor(data, [...shape]);
    });
    // What gradients are taken through must outlive the forward pass.
    const ids = tf.tensor1d(tokens, 'int32');
    const targets = tf.tensor1d(tokens.slice(1), 'int32');
    const segments = tf.zeros([1, tokens.length], 'int32') as Tensor2D;
    const nll = (...trained: Tensor[]): Scalar => {
      const all = logitsOf(config, names, trained, ids, segments);
      const last = tokens.length - 1;
      const predicting = tf.slice(all, [0, 0], [last, config.vocabSize]);
      const given = tokenLogprobs(backend, predicting, targets);
      return tf.neg(tf.mean(given.logprobs)) as Scalar;
    };
    const whole = logitsOf(config, names, tensors, ids, segments);
    const predicting = tf.slice(whole, [0, 0], [tokens.length - 1, config.vocabSize]);
    const given = tokenLogprobs(backend, predicting, targets).logprobs;
    return { logits: whole, logprobs: given as Tensor1D, gradients: tf.grads(nll)(tensors) };
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
