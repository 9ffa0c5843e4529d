import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { normal, philox4x32, randomKey, RandomStream, uniform } from '../../../core/random.ts';

type Words = [number, number, number, number];

describe('Philox4x32-10', () => {
  // kat_vectors of the Random123 distribution.
  test.each<[Words, [number, number], Words]>([
    [
      [0, 0, 0, 0],
      [0, 0],
      [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8],
    ],
    [
      [0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff],
      [0xffffffff, 0xffffffff],
      [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd],
    ],
    [
      [0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344],
      [0xa4093822, 0x299f31d0],
      [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1],
    ],
  ])('answers as published for counter %j', (counter, [k0, k1], expected) => {
    expect(philox4x32(counter, { k0, k1 })).toEqual(expected);
  });

  test('a draw uses the counter beyond 32 bits', () => {
    const key = { k0: 0, k1: 0 };
    expect(uniform(key, 0)).toBe(0x6627e8d5 / 2 ** 32);
    expect(uniform(key, 2 ** 32 + 5)).toBe(philox4x32([5, 1, 0, 0], key)[0] / 2 ** 32);
    expect(uniform(key, 2 ** 53 - 1)).toBe(philox4x32([0xffffffff, 0x1fffff, 0, 0], key)[0] / 2 ** 32);
  });
});

/** Pearson's statistic against equal frequencies. */
function chiSquare(counts: readonly number[]): number {
  const expected = counts.reduce((a, b) => a + b, 0) / counts.length;
  return counts.reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0);
}

/** The 99.99 % quantile for 63 degrees of freedom: a fair generator passes it for all but one key in 10,000. */
const CHI_63 = 112.9;

describe('draws', () => {
  test.each([
    ['along one stream', (i: number) => uniform(randomKey(7, 'rl'), i)],
    ['over keys that differ in one number', (i: number) => uniform(randomKey(7, 'rl', i), 0)],
    ['over seeds', (i: number) => uniform(randomKey(i, 'tasks', 'stage', 1), 0)],
  ])('are uniform %s', (_, draw) => {
    const counts = Array.from({ length: 64 }, () => 0);
    for (let i = 0; i < 64_000; i++) counts[Math.floor(draw(i) * 64)]!++;
    expect(chiSquare(counts)).toBeLessThan(CHI_63);
  });

  test('of neighbouring keys have nothing to do with each other', () => {
    const counts = Array.from({ length: 64 }, () => 0);
    for (let i = 0; i < 64_000; i++) {
      const [a, b] = [uniform(randomKey('rollout', i), 0), uniform(randomKey('rollout', i + 1), 0)];
      counts[8 * Math.floor(a * 8) + Math.floor(b * 8)]!++;
    }
    expect(chiSquare(counts)).toBeLessThan(CHI_63);
  });

  test('stay in [0, 1) and depend on nothing but key and counter', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(1e6), { minLength: 2, maxLength: 20 }), fc.string(), (counters, label) => {
        const key = randomKey(label);
        const forth = new Map(counters.map((counter) => [counter, uniform(key, counter)]));
        for (const counter of counters.toReversed()) {
          const drawn = uniform(randomKey(label), counter);
          expect(drawn).toBe(forth.get(counter));
          expect(drawn >= 0 && drawn < 1).toBe(true);
        }
      }),
    );
  });

  test('normal ones have the mean, the deviation and the tails of a normal', () => {
    const draws = Array.from({ length: 40_000 }, (_, i) => normal(randomKey('normal'), i));
    const mean = draws.reduce((a, b) => a + b, 0) / draws.length;
    const variance = draws.reduce((sum, x) => sum + (x - mean) ** 2, 0) / draws.length;
    expect(Math.abs(mean)).toBeLessThan(0.02);
    expect(Math.abs(variance - 1)).toBeLessThan(0.03);
    const outside = draws.filter((x) => Math.abs(x) > 1.959964).length / draws.length;
    expect(Math.abs(outside - 0.05)).toBeLessThan(0.005);
  });
});

describe('keys', () => {
  test('of different places in a run differ', () => {
    const seen = new Set<string>();
    for (let step = 0; step < 50; step++) {
      for (let group = 0; group < 40; group++) {
        for (let sample = 0; sample < 40; sample++) {
          const { k0, k1 } = randomKey(1, 'rollout', 'rl', step, group, sample);
          seen.add(`${k0},${k1}`);
        }
      }
    }
    expect(seen.size).toBe(50 * 40 * 40);
  });

  test('tell a number from its text, and where one label ends and the next begins', () => {
    const paths = [
      ['a', 1],
      ['a', '1'],
      ['a1'],
      ['a', 1, ''],
      [1, 'a'],
      ['ab', 'c'],
      ['a', 'bc'],
      ['a', 11],
      ['a', 1, 1],
    ];
    const keys = paths.map((path) => JSON.stringify(randomKey(...path)));
    expect(new Set(keys).size).toBe(paths.length);
  });
});

describe('a stream', () => {
  test('gives the same numbers as another one of the same path', () => {
    const [one, other] = [new RandomStream(3, 'x'), new RandomStream(3, 'x')];
    const draws = Array.from({ length: 100 }, () => one.int(1, 6));
    expect(Array.from({ length: 100 }, () => other.int(1, 6))).toEqual(draws);
    expect(new Set(draws)).toEqual(new Set([1, 2, 3, 4, 5, 6]));
  });

  test('shuffles into every order equally often, and loses nothing', () => {
    const stream = new RandomStream('shuffle');
    const seen = new Map<string, number>();
    for (let i = 0; i < 12_000; i++) {
      const order = stream.shuffle(['a', 'b', 'c', 'd']).join('');
      seen.set(order, (seen.get(order) ?? 0) + 1);
    }
    expect(seen.size).toBe(24);
    // 23 degrees of freedom, 99.99 %.
    expect(chiSquare([...seen.values()])).toBeLessThan(56.1);
  });
});
