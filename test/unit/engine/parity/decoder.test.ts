import { expect, onTestFinished, test } from 'vitest';
import { randomKey } from '../../../../core/random.ts';
import { createDecoder } from '../../../../engine/decoder/decoder.ts';
import { OnnxBackend } from '../../../../engine/decoder/onnx-backend.ts';
import { flat } from '../../../support/engine/random-model.ts';
import { cases, fixture, largestDifference, PROMPT } from './fixture.ts';

test.each(cases)('%s: the decoder gives the logits of PyTorch, whole and token by token', async (name) => {
  const { config, weights, tokens, logits } = await fixture(name);
  const row = (position: number) =>
    logits.subarray(position * config.vocabSize, (position + 1) * config.vocabSize);
  const backend = await OnnxBackend.load(config, flat(config, weights), 1);
  onTestFinished(() => backend.dispose());
  for (const length of [1, 2, 33, tokens.length]) {
    const given = await backend.prefill(tokens.slice(0, length));
    expect(largestDifference(given.logits, row(length - 1))).toBeLessThan(1e-4);
  }
});

test.each(cases)('%s: the decoder continues greedily as transformers does', async (name) => {
  const { config, weights, tokens, greedy } = await fixture(name);
  const decoder = createDecoder({ threads: 1 });
  onTestFinished(() => decoder.close());
  await decoder.load('fixture', config, weights);
  const sampled = await decoder.sample({
    session: 'one',
    prefix: tokens.slice(0, PROMPT),
    continuation: [],
    maxNewTokens: greedy.length,
    stopTokens: [],
    sampling: { temperature: 0, topK: 0, topP: 1 },
    key: randomKey('greedy'),
  });
  expect(sampled.tokens).toEqual(greedy);
});

test.each(cases)(
  '%s: log-probs of a history that is fed token by token are those of PyTorch',
  async (name) => {
    const { config, weights, tokens, logprobs } = await fixture(name);
    const decoder = createDecoder({ threads: 1 });
    onTestFinished(() => decoder.close());
    await decoder.load('fixture', config, weights);
    // Top-p 0 at temperature 1 draws the likeliest token and reports its log-prob under the whole softmax.
    for (const position of [PROMPT + 1, 50, tokens.length - 1]) {
      const { tokens: drawn, samplerLogprobs: given } = await decoder.sample({
        session: `at ${position}`,
        prefix: tokens.slice(0, PROMPT),
        continuation: tokens.slice(PROMPT, position),
        maxNewTokens: 1,
        stopTokens: [],
        sampling: { temperature: 1, topK: 0, topP: 0 },
        key: randomKey('likeliest'),
      });
      const known = (await fixture(name)).logits.subarray(
        (position - 1) * config.vocabSize,
        position * config.vocabSize,
      );
      const total = Math.log(known.reduce((sum, logit) => sum + Math.exp(logit), 0));
      expect(Math.abs(given[0]! - (known[drawn[0]!]! - total))).toBeLessThan(1e-4);
      // The reference agrees with itself: what PyTorch reported for the token that really came.
      expect(Math.abs(known[tokens[position]!]! - total - logprobs[position - 1]!)).toBeLessThan(1e-5);
    }
  },
);
