import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { algorithmSchema, computeAdvantages } from '../../../../core/algorithms/index.ts';
import type { Sample } from '../../../../core/algorithms/sample.ts';
import { chooseBranches, treeOf } from '../../../../core/episode/tree.ts';
import { atOnce } from '../../../../engine/in-pieces.ts';
import { taskGroup } from '../../../support/task-group.ts';

// Trees against Python code that enumerates samples and builds none: test/reference/methods/papers/tree_search.py.

interface WrittenSample {
  tokens: number[];
  mask: (0 | 1)[];
  turns: { start: number; end: number }[];
  inherited: number;
  reward: number | null;
  turn_rewards: number[];
}
type Place = [sample: number, turn: number];

interface Case<Expected> {
  name: string;
  method: string;
  settings: { [name: string]: number };
  groups: { samples: WrittenSample[] }[];
  expected: Expected;
}

const { cases } = JSON.parse(
  readFileSync(new URL('../../../reference/methods/credit.json', import.meta.url), 'utf8'),
) as { cases: Case<unknown>[] };
const casesOf = <Expected>(method: string) =>
  cases.filter((one) => one.method === method).map((one) => [one.name, one as Case<Expected>] as const);

const turnsOf = (turns: WrittenSample['turns'], paid: readonly number[]) =>
  turns.map((turn, k) => ({ ...turn, reward: paid[k]!, state: '' }));

const sampleOf = ({ turns, inherited, turn_rewards: paid, ...written }: WrittenSample): Sample => ({
  ...written,
  success: null,
  before: turnsOf(turns, paid).slice(0, inherited),
  turns: turnsOf(turns, paid).slice(inherited),
  samplerLogprobs: written.mask.map(() => 0),
  scores: {},
  truncated: false,
});

describe('the pairs of agentq are those of the enumeration', () => {
  test.each(casesOf<{ pairs: { better: Place; worse: Place }[][] }>('agentq'))('%s', (_, one) => {
    const groups = one.groups.map(({ samples }) => taskGroup(samples.map(sampleOf)));
    const computed = computeAdvantages(algorithmSchema.parse({ kind: 'agentq', ...one.settings }), groups);
    const placeOf = ({ group, sample, mask }: (typeof computed)[number]): Place => [
      sample,
      groups[group]!.samples[sample]!.turns.findIndex(({ start }) => start === mask!.indexOf(1)),
    ];
    const pairs = groups.map((_group, g) => {
      const own = computed.filter(({ group }) => group === g);
      return own
        .filter(({ label }) => label === 1)
        .map((better) => ({
          better: placeOf(better),
          worse: placeOf(own.find(({ pair, label }) => pair === better.pair && label === -1)!),
        }));
    });
    expect(pairs).toEqual(one.expected.pairs);
  });
});

describe('samples branch off where the enumeration says', () => {
  test.each(casesOf<{ branches: Place[][] }>('tree-search'))('%s', (_, one) => {
    const { count, width, exploration } = one.settings;
    const branches = one.groups.map(({ samples }) => {
      const known = samples.flatMap(({ reward, ...path }, place) =>
        reward === null ? [] : [{ path: { ...path, reward }, place }],
      );
      const root = treeOf(known.map(({ path }) => path))!;
      return atOnce(chooseBranches(root, count!, { width: width!, exploration: exploration! })).map(
        ({ sample, turn }): Place => [known[sample]!.place, turn],
      );
    });
    expect(branches).toEqual(one.expected.branches);
  });
});

test('there are cases of both', () => {
  expect([casesOf('agentq').length, casesOf('tree-search').length]).toEqual([5, 4]);
});
