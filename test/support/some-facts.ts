import {
  array,
  boolean,
  constantFrom,
  dictionary,
  double,
  integer,
  nat,
  option,
  oneof,
  record,
  string,
} from 'fast-check';
import type { Arbitrary } from 'fast-check';
import { OBSERVED_ERRORS } from '../../core/episode/facts.ts';
import type { FactsInStep } from '../../runs/find/episode-index.ts';

const finite = double({ noNaN: true, noDefaultInfinity: true });
const count = nat(50);
const byName = <T>(value: Arbitrary<T>): Arbitrary<Record<string, T>> =>
  dictionary(oneof(string(), constantFrom('search', 'look', '__proto__')), value, {
    maxKeys: 3,
    noNullPrototype: true,
  });

/** Facts of any kind that there can be, and names that nobody would choose. */
export const someFacts: Arbitrary<FactsInStep> = record({
  group: count,
  episode: count,
  sample: count,
  environment: constantFrom('calculator', 'house'),
  split: constantFrom('train', 'heldout', 'test'),
  level: constantFrom(1, 2, 2.5),
  index: nat(2 ** 40),
  retried: boolean(),
  hinted: boolean(),
  weights: constantFrom('a', 'b'),
  status: constantFrom('answered', 'ended', 'truncated', 'failed'),
  outcome: constantFrom('scored', 'pending', 'abstained', 'truncated', 'failed'),
  reason: option(string()),
  boundary: option(constantFrom('tool', 'infra')),
  success: option(boolean()),
  reward: option(finite),
  turns: count,
  calls: count,
  promptTokens: count,
  sampledTokens: integer({ min: 0, max: 40_000 }),
  observationTokens: count,
  inheritedTokens: count,
  logprobSum: finite,
  answer: option(string({ unit: 'grapheme' })),
  scores: byName(option(finite)),
  contributions: byName(finite),
  tools: byName(integer({ min: 1, max: 9 })),
  errors: dictionary(constantFrom(...OBSERVED_ERRORS), integer({ min: 1, max: 9 }), {
    noNullPrototype: true,
  }),
  toolSeconds: finite,
});

export const someStep = record({
  stage: constantFrom('rl', 'rl.held-out', 'before'),
  step: integer({ min: 0, max: 40 }),
  rows: array(someFacts, { maxLength: 12 }),
});
