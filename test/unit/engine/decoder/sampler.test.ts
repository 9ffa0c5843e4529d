import { describe, expect, it } from 'vitest';
import { normal, randomKey, RandomStream, uniform } from '../../../../core/random.ts';
import { MOST_TOP_K } from '../../../../core/names.ts';
import { logprobOf, Sampler } from '../../../../engine/decoder/sampler.ts';
import type { SamplingSettings } from '../../../../engine/policy.ts';
import { softmax } from './reference-forward.ts';

const plain: SamplingSettings = { temperature: 1, topK: 0, topP: 1 };

const randomLogits = (seed: number, size: number, spread: number) =>
  Float32Array.from({ length: size }, (_, i) => spread * normal(randomKey('logits', seed), i));

/** Probability of each token after truncation, by sorting everything. */
function reference(logits: Float32Array, { temperature, topK, topP }: SamplingSettings): number[] {
  const probabilities = softmax([...logits].map((x) => x / temperature));
  let ranked = probabilities
    .map((p, token) => ({ p, token }))
    .toSorted((a, b) => b.p - a.p || a.token - b.token);
  if (topK > 0) ranked = ranked.slice(0, topK);
  const mass = ranked.reduce((sum, { p }) => sum + p, 0);
  let sum = 0;
  const cut = ranked.findIndex(({ p }) => (sum += p) >= topP * mass);
  if (topP < 1) ranked = ranked.slice(0, cut + 1);
  const kept = ranked.reduce((total, { p }) => total + p, 0);
  const result = probabilities.map(() => 0);
  for (const { p, token } of ranked) result[token] = p / kept;
  return result;
}

describe('the sampler', () => {
  it('draws what inverting the cumulative distribution of a full sort draws', () => {
    const random = new RandomStream('sampler');
    for (let trial = 0; trial < 3000; trial++) {
      const size = random.int(1, 300);
      const logits = randomLogits(trial, size, random.pick([0.01, 1, 3, 10]));
      const settings = {
        temperature: random.pick([0.3, 1, 1.7]),
        topK: random.pick([1, 5, 50, 1000]),
        topP: random.pick([1, 0, 0.1, 0.5, 0.9, 0.999]),
      };
      if (settings.topP === 1) settings.topK = random.pick([0, settings.topK]);
      const u = random.uniform();
      const expected = reference(logits, settings);
      let sum = 0;
      const token = expected.findIndex((p) => p > 0 && u < (sum += p));
      const draw = new Sampler(size).draw(logits, 0, settings, u);
      expect(draw.token).toBe(token);
      // The log-prob is of what it drew from, which it names wherever something was cut.
      expect(logprobOf(draw)).toBeCloseTo(Math.log(expected[token]!), 10);
      const among = expected.flatMap((p, id) => (p > 0 ? [id] : []));
      const isNamed = settings.topK > 0 && settings.topK <= MOST_TOP_K && among.length < size;
      expect(draw.kept).toEqual(isNamed ? among : undefined);
    }
  });

  it('ranks equal logits by id', () => {
    const logits = new Float32Array(8);
    const tokens = new Set(
      Array.from(
        { length: 200 },
        (_, i) => new Sampler(8).draw(logits, 0, { ...plain, topK: 3 }, i / 200).token,
      ),
    );
    expect(tokens).toEqual(new Set([0, 1, 2]));
    expect(new Sampler(8).draw(logits, 0, { ...plain, temperature: 0 }, 0.9)).toEqual({
      token: 0,
      margin: 0,
      total: 1,
    });
  });

  it('reads the row that it is told to', () => {
    const logits = Float32Array.from([9, 0, 0, 0, 0, 9]);
    expect(new Sampler(3).draw(logits, 3, { ...plain, temperature: 0 }, 0).token).toBe(2);
    expect(new Sampler(3).draw(logits, 3, plain, 0.5).token).toBe(2);
  });

  it('with top-p alone draws from the nucleus, whatever it is', () => {
    const random = new RandomStream('nucleus');
    for (let trial = 0; trial < 3000; trial++) {
      const size = random.int(1, 300);
      const logits = randomLogits(trial, size, random.pick([0, 0.01, 1, 3, 10]));
      const settings = {
        temperature: random.pick([0.3, 1, 1.7]),
        topK: 0,
        topP: random.pick([0, 0.001, 0.1, 0.5, 0.9, 0.999]),
      };
      const expected = reference(logits, settings);
      const draw = new Sampler(size).draw(logits, 0, settings, random.uniform());
      expect(expected[draw.token]).toBeGreaterThan(0);
      const full = softmax([...logits].map((x) => x / settings.temperature));
      expect(logprobOf(draw)).toBeCloseTo(Math.log(full[draw.token]!), 10);
    }
  });

  it.each([
    { temperature: 0.8, topK: 12, topP: 0.9 },
    { temperature: 0.8, topK: 0, topP: 0.9 },
    { temperature: 1.2, topK: 0, topP: 0.05 },
  ])('follows the distribution of %o', (settings) => {
    const logits = randomLogits(7, 20, 1.5);
    const expected = reference(logits, settings);
    const sampler = new Sampler(20);
    const counts = expected.map(() => 0);
    const draws = 40_000;
    for (let i = 0; i < draws; i++)
      counts[sampler.draw(logits, 0, settings, uniform(randomKey('d'), i)).token]!++;
    // Pearson's chi-squared; 99.9 % of the distribution with up to 11 degrees of freedom lies below 31.3.
    const chi = counts.reduce((sum, count, i) => {
      const mean = expected[i]! * draws;
      return mean === 0 ? sum + count : sum + (count - mean) ** 2 / mean;
    }, 0);
    expect(chi).toBeLessThan(31.3);
  });
});
