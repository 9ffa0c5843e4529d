import { expect, test } from 'vitest';
import { normal, randomKey } from '../../../../core/random.ts';
import { logprobOf, Sampler } from '../../../../engine/decoder/sampler.ts';
import {
  distributionOf,
  drawFrom,
  rankOf,
  truncated,
  untempered,
} from '../../../support/policy-server/distribution.ts';

const SIZE = 60;
const logits = Float32Array.from({ length: SIZE }, (_, i) => 3 * normal(randomKey('logits'), i));
const sampler = new Sampler(SIZE);
const at = (temperature: number) =>
  distributionOf(sampler.likeliest(logits, 0, temperature, { most: 0, also: [...logits.keys()] }), SIZE);

test('a distribution at temperature 1 follows from one at another', () => {
  const found = untempered(at(0.7), 0.7);
  for (const [token, logprob] of at(1).entries()) expect(found[token]).toBeCloseTo(logprob, 9);
});

test('what top-k and top-p leave is what the sampler draws among', () => {
  for (const topP of [1, 0.9, 0.4]) {
    const left = truncated(at(0.8), { topK: 12, topP, minP: 0 });
    for (let i = 0; i < 50; i++) {
      const drawn = sampler.draw(logits, 0, { temperature: 0.8, topK: 12, topP }, i / 50);
      expect(left[drawn.token]).toBeCloseTo(logprobOf(drawn), 9);
      expect(drawFrom(left, i / 50)).toBe(drawn.token);
    }
  }
});

test('min-p keeps what has that share of the likeliest', () => {
  const all = at(1);
  const most = Math.max(...all);
  const left = truncated(all, { topK: 0, topP: 1, minP: 0.2 });
  const kept = [...left.keys()].filter((token) => left[token] !== -Infinity);
  expect(kept).toEqual([...all.keys()].filter((token) => all[token]! >= most + Math.log(0.2)));
  expect(left.reduce((sum, logprob) => sum + Math.exp(logprob), 0)).toBeCloseTo(1, 9);
  expect(rankOf(all, all.indexOf(most))).toBe(1);
});
