import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { algorithmSchema, computeAdvantages } from '../../../../core/algorithms/index.ts';
import type { AlgorithmSpec } from '../../../../core/algorithms/index.ts';
import { mixesSuccess, mostDeviating, rewardsDiffer } from '../../../../core/algorithms/group-baseline.ts';
import type { TaskGroup } from '../../../../core/algorithms/task-group.ts';
import type { Sample } from '../../../../core/algorithms/sample.ts';
import { taskGroup } from '../../../support/task-group.ts';

// Against PyTorch code that was written from the papers alone: test/reference/methods.

interface WrittenSample {
  mask: (0 | 1)[];
  turns: { start: number; end: number }[];
  reward: number | null;
  turn_rewards?: number[];
  states?: string[];
  rollout?: number[];
  values?: number[];
  reference?: number[];
  policy?: number[];
}

interface Case {
  name: string;
  method: string;
  settings: Record<string, number | string | boolean>;
  groups: { samples: WrittenSample[]; greedy_reward?: number | null }[];
  expected: { advantages?: (number[] | null)[][]; returns?: (number[] | null)[][]; kept?: boolean[] };
}

const { cases } = JSON.parse(
  readFileSync(new URL('../../../reference/methods/credit.json', import.meta.url), 'utf8'),
) as { cases: Case[] };

const groupOf = ({ samples, greedy_reward: greedy }: Case['groups'][number]): TaskGroup =>
  taskGroup(
    samples.map((written): Sample => ({
      reward: written.reward,
      success: written.reward === null ? null : written.reward === 1,
      tokens: written.mask.map((_, t) => t),
      mask: written.mask,
      before: [],
      samplerLogprobs: written.rollout ?? written.mask.map(() => 0),
      scores: {
        ...(written.values && { values: written.values }),
        ...(written.reference && { reference: written.reference }),
        ...(written.policy && { policy: written.policy }),
      },
      truncated: false,
      turns: written.turns.map((turn, k) => ({
        ...turn,
        reward: written.turn_rewards?.[k] ?? 0,
        state: written.states?.[k] ?? `${k}`,
      })),
    })),
    typeof greedy === 'number' ? { greedy } : {},
  );

type Written = Record<string, unknown> & { kind: string };

/** The section of a spec that says the same as a case. */
function written({ method, settings }: Case): Written {
  const { gamma, lambda, klCoefficient, whiten: whitenAdvantages } = settings;
  const critic = { klCoefficient, whitenAdvantages };
  switch (method) {
    case 'grpo':
    case 'dr-grpo':
      return { kind: 'grpo', scaleRewards: settings['scale'] };
    case 'reinforce++':
      return { kind: 'reinforce++', baseline: 'none', klCoefficient };
    case 'reinforce++-baseline':
      return { kind: 'reinforce++', baseline: 'group' };
    case 'ppo':
      return { kind: 'ppo', gamma, lambda, ...critic };
    case 'bi-level-gae':
      return {
        kind: 'ppo',
        gamma: settings['gammaToken'],
        lambda: settings['lambdaToken'],
        turns: { gamma: settings['gammaTurn'], lambda: settings['lambdaTurn'] },
        ...critic,
      };
    case 'vapo':
      return { kind: 'vapo', gamma, alpha: settings['alpha'], ...critic };
    case 'vtrace':
    case 'retrace': {
      const { rhoBar, cBar } = settings;
      return { kind: 'vtrace', target: method, gamma, lambda, rhoBar, cBar, ...critic };
    }
    case 'gigpo':
      return { kind: 'gigpo', omega: settings['omega'], gamma, scaleRewards: settings['scale'] };
    case 'process':
      return { kind: 'process', over: settings['over'], gamma };
    default:
      return { kind: method };
  }
}

/** Of each sample; null where it has none. */
function computedOf(spec: AlgorithmSpec, groups: readonly TaskGroup[], stream: 'advantages' | 'returns') {
  const computed = computeAdvantages(spec, groups);
  return groups.map(({ samples }, g) =>
    samples.map(
      (_, s) => computed.find(({ group, sample }) => group === g && sample === s)?.[stream] ?? null,
    ),
  );
}

function expectClose(got: (number[] | null)[][], wanted: (number[] | null)[][], scale: number): void {
  expect(got.map((group) => group.map((values) => values?.length))).toEqual(
    wanted.map((group) => group.map((values) => values?.length)),
  );
  wanted
    .flat()
    .forEach((values, i) =>
      values?.forEach((value, t) => expect(got.flat()[i]![t]! * scale).toBeCloseTo(value, 8)),
    );
}

const CREDITS = cases.filter(({ expected }) => expected.advantages);

describe('credit is what the papers say', () => {
  test.each(CREDITS.map((one) => [one.name, one] as const))('%s', (_, one) => {
    let spec = algorithmSchema.parse(written(one));
    let scale = 1;
    if (one.method === 'process') {
      // The reference has two weights; ours add up to 1, and a person may not choose less than half for the outcome.
      const [outcome, turns] = [one.settings['outcomeWeight'], one.settings['processWeight']] as number[];
      scale = outcome! + turns!;
      spec = { ...spec, outcomeShare: outcome! / scale } as AlgorithmSpec;
    }
    const groups = one.groups.map(groupOf);
    expectClose(computedOf(spec, groups, 'advantages'), one.expected.advantages!, scale);
    if (one.expected.returns) expectClose(computedOf(spec, groups, 'returns'), one.expected.returns, 1);
  });

  test('of every method that has a reference', () => {
    const kinds = new Set(CREDITS.map((one) => written(one).kind));
    expect([...kinds].toSorted()).toEqual(
      ['gigpo', 'grpo', 'ppo', 'process', 'reinforce++', 'remax', 'rloo', 'vapo', 'vtrace'].toSorted(),
    );
  });
});

describe('filters keep what the papers say', () => {
  test('and DAPO learns from no other group', () => {
    for (const one of cases.filter(({ method }) => method === 'dynamic-sampling')) {
      const groups = one.groups.map(groupOf);
      const computed = computeAdvantages(
        algorithmSchema.parse({ kind: 'dapo', filter: one.settings['by'] }),
        groups,
      );
      expect(new Set(computed.map(({ group }) => group))).toEqual(
        new Set([...groups.keys()].filter((g) => one.expected.kept![g])),
      );
    }
    expect(algorithmSchema.parse({ kind: 'dapo' })).toMatchObject({ filter: 'correctness' });
  });

  const filters = cases.filter(({ expected }) => expected.kept);
  test.each(filters.map((one) => [one.name, one] as const))('%s', (_, one) => {
    const groups = one.groups.map(groupOf);
    const kept =
      one.method === 'dynamic-sampling'
        ? groups.map(one.settings['by'] === 'correctness' ? mixesSuccess : rewardsDiffer)
        : groups.map((_, g) => mostDeviating(groups, Number(one.settings['keep'])).has(g));
    expect(kept).toEqual(one.expected.kept);
  });
});
