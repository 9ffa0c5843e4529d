import { expect, test } from 'vitest';
import { assertSampled, assertTokens } from '../../../../../activities/rollout/served/assert-sampled.ts';
import type { ServerSample } from '../../../../../activities/rollout/served/server-api.ts';

const request = { maxNewTokens: 4, stopTokens: [9] };
const sample = (more: Partial<ServerSample> = {}): ServerSample => ({
  tokens: [1, 2, 9],
  logprobs: [-1, -1, -1],
  finish: 'stop',
  versions: [{ version: 'w', start: 0, end: 3 }],
  ...more,
});
const of = (version: string, start: number, end: number) => ({ version, start, end });

test('a sample is of the weights that were asked for, from its first token to its last', () => {
  const check =
    (more?: Partial<ServerSample>, weights: string | null = 'w') =>
    (): void =>
      assertSampled('http://s', request, sample(more), weights);
  expect(check()).not.toThrow();
  expect(check({ versions: [of('w', 2, 3), of('w', 0, 2)] })).not.toThrow();
  expect(check({ versions: null }, null)).not.toThrow();
  const partly = 'says of some tokens only which weights made them';
  for (const versions of [[], [of('w', 0, 2)], [of('w', 1, 3)], [of('w', 0, 1), of('w', 2, 3)]])
    expect(check({ versions })).toThrow(partly);
  expect(check({ versions: null })).toThrow('does not say which weights made it');
  expect(check({ versions: [of('w', 0, 2), of('v', 2, 3)] })).toThrow('tokens 2 to 3 are of the weights v');
  expect(check({ tokens: [], logprobs: [] })).toThrow('0 tokens and 0 log-probs where 1 to 4');
  expect(check({ logprobs: [-1] })).toThrow('3 tokens and 1 log-probs');
  expect(check({ logprobs: [-1, -9999, -1] })).toThrow('whose log-prob is -9999');
  expect(check({ tokens: [1, 2, 3] })).toThrow('a turn has ended with token 3, which ends none');
});

test('an id that no token has is no sample, and asking again would not help', () => {
  const config = {
    vocabSize: 20,
    maskedTokens: [
      [10, 12],
      [18, 20],
    ] as [number, number][],
  };
  expect(() => assertTokens('http://s', [0, 9, 12, 17], config)).not.toThrow();
  for (const id of [10, 11, 18, 20, 999_999]) {
    expect(() => assertTokens('http://s', [0, id], config)).toThrow(
      expect.objectContaining({ boundary: 'policy', type: 'server-vocabulary', retryable: false }),
    );
  }
});
