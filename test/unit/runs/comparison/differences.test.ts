import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Episode } from '../../../../core/episode/episode.ts';
import { differencesOf } from '../../../../runs/comparison/differences.ts';
import { episodeDifference } from '../../../../runs/comparison/episode-difference.ts';

test('what differs is told by its path, and members of a list by their names wherever they stand', () => {
  const one = {
    seed: 1,
    stages: [
      { name: 'a', rate: 1 },
      { name: 'b', rate: 2 },
    ],
    extra: { deep: [1, 2] },
  };
  const other = { seed: 1, stages: [{ name: 'b', rate: 3 }], extra: { deep: [1, 3] }, more: {} };
  expect(differencesOf([one, other])).toEqual([
    { path: 'stages[a].name', values: ['"a"', null] },
    { path: 'stages[a].rate', values: ['1', null] },
    { path: 'stages[b].rate', values: ['2', '3'] },
    { path: 'extra.deep[1]', values: ['2', '3'] },
    { path: 'more', values: [null, '{}'] },
  ]);
});

test('there is a difference where two values are not the same, and none where they are', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (one, other) => {
      const [a, b] = [one, other].map((value) => JSON.parse(JSON.stringify({ value })) as unknown);
      expect(differencesOf([a, structuredClone(a), a])).toEqual([]);
      expect(differencesOf([a, b]).length > 0).toBe(!sameJson(a, b));
    }),
  );
});

/** Whatever order fields are in. */
function sameJson(a: unknown, b: unknown): boolean {
  try {
    expect(a).toStrictEqual(b);
    return true;
  } catch {
    return false;
  }
}

const episode = (over: Partial<Episode> = {}): Episode => ({
  sample: 0,
  task: 0,
  tokens: [1, 2, 3],
  mask: [1, 1, 0],
  samplerLogprobs: [-0.5, -1, 0],
  turns: [
    {
      start: 0,
      end: 2,
      text: 'a',
      action: { kind: 'answer', answer: 'a' },
      observation: { text: 'seen', seconds: 1 },
    },
  ],
  status: { kind: 'answered', answer: 'a' },
  outcome: { kind: 'scored', reward: 1, components: [] },
  ...over,
});
const same = { token: null, logprob: null, conduct: false, verdict: false, rewards: [1, 1] };

test('how long a call took is no difference, and what it brought is', () => {
  const [turn] = episode().turns;
  const slower = { ...turn!, observation: { text: 'seen', seconds: 2 } };
  expect(episodeDifference(episode(), episode({ turns: [slower] }))).toEqual(same);
  const otherwise = { ...turn!, observation: { text: 'not seen', seconds: 1 } };
  expect(episodeDifference(episode(), episode({ turns: [otherwise] }))).toEqual({ ...same, conduct: true });
});

test('a log-prob that differs in its last bit is a difference, and so is an end that comes earlier', () => {
  const samplerLogprobs = [-0.5, -1 - Number.EPSILON, 0];
  expect(episodeDifference(episode(), episode({ samplerLogprobs }))).toEqual({
    ...same,
    logprob: { at: 1, values: [-1, -1 - Number.EPSILON] },
  });
  const shorter = episode({ tokens: [1, 2], mask: [1, 1], samplerLogprobs: [-0.5, -1] });
  expect(episodeDifference(episode(), shorter)).toMatchObject({
    token: { at: 2, values: [3, null] },
    logprob: { at: 2, values: [0, null] },
  });
  expect(episodeDifference(episode(), undefined)).toMatchObject({
    token: { at: 0, values: [1, null] },
    rewards: [1, null],
  });
});
