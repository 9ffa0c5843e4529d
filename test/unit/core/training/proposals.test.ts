import { describe, expect, test } from 'vitest';
import { learnabilityOf, rewardProposals, sortOut } from '../../../../core/training/proposals.ts';
import type { CheckedProposal, StepProposal } from '../../../../core/training/proposals.ts';
import type { TaskSource } from '../../../../core/training/task-source.ts';

const arm = (level: number) => ({ environment: 'programs', level });
const accepted = (canonical: string, level = 1, like = 'shape'): CheckedProposal => ({
  kind: 'accepted',
  arm: arm(level),
  proposal: { is: canonical },
  canonical,
  like,
});
const source = (...canonical: string[]): TaskSource => ({
  arms: { 'programs:1': canonical.map((one) => ({ proposal: { is: one }, canonical: one, step: 1 })) },
});
const at = { step: 2, mostTasks: 8 };

describe('what is proposed', () => {
  test('is kept once, whoever proposes it again in the step', () => {
    const { made, episodes, grown, counts } = sortOut(
      source(),
      [[accepted('a'), accepted('a')], [accepted('b')]],
      at,
    );
    expect(episodes).toEqual([
      [
        { kind: 'made', task: 0, first: true, like: 'shape' },
        { kind: 'made', task: 0, first: false, like: 'shape' },
      ],
      [{ kind: 'made', task: 1, first: true, like: 'shape' }],
    ]);
    expect(made).toEqual([
      { ...arm(1), index: 0 },
      { ...arm(1), index: 1 },
    ]);
    expect(counts).toEqual({ 'programs:1': 2 });
    expect(grown.arms['programs:1']!.map(({ canonical }) => canonical)).toEqual(['a', 'b']);
  });

  test('is nothing new where an earlier step has made it, and another task at another level', () => {
    const { episodes, made } = sortOut(source('a'), [[accepted('a'), accepted('a', 2)]], at);
    expect(episodes[0]!.map(({ kind }) => kind)).toEqual(['known', 'made']);
    expect(made).toEqual([{ ...arm(2), index: 0 }]);
  });

  test('takes the place of the oldest where there is no more room, at the place that is told', () => {
    const { grown, made } = sortOut(source('a', 'b', 'c'), [[accepted('d'), accepted('e')]], {
      ...at,
      mostTasks: 3,
    });
    const kept = grown.arms['programs:1']!.map(({ canonical }) => canonical);
    expect(kept).toEqual(['c', 'd', 'e']);
    expect(made.map(({ index }) => kept[index])).toEqual(['d', 'e']);
  });

  test('leaves the source as it is where nothing is made', () => {
    const { grown, made } = sortOut(source('a'), [[null, { kind: 'invalid', reason: 'easy' }]], at);
    expect([grown, made]).toEqual([source('a'), []]);
  });
});

test('what all or none of the samples solve is worth nothing, by either measure at one end', () => {
  const by = (learnability: 'absolute-zero' | 'r-zero') =>
    [0, 1, 2, 4].map((successes) => learnabilityOf({ successes, trials: 4 }, learnability));
  expect(by('absolute-zero')).toEqual([0, 0.75, 0.5, 0]);
  expect(by('r-zero')).toEqual([0, 0.5, 1, 0]);
});

describe('rewards of proposals', () => {
  const how = {
    learnability: 'absolute-zero',
    repetitionPenalty: 1,
    invalidReward: -0.5,
    malformedReward: -1,
  } as const;
  const made = (task: number, like: string, first = true): StepProposal => ({
    kind: 'made',
    task,
    first,
    like,
  });
  const half = { successes: 2, trials: 4 };

  test('one that is proposed all the time loses its share of the step', () => {
    const same = [made(0, 'a'), made(0, 'a', false), made(0, 'a', false), made(1, 'b')];
    expect(rewardProposals([same], [half, half], how)).toEqual([[0, 0, 0, 0.5]]);
    expect(rewardProposals([same], [half, half], { ...how, repetitionPenalty: 0 })).toEqual([
      [0.5, 0.5, 0.5, 0.5],
    ]);
  });

  test('is never worth less than no task, where there is a least reward of valid ones', () => {
    const alike = Array.from({ length: 36 }, (_, task) => made(task, 'a'));
    const unsolved = alike.map(() => ({ successes: 0, trials: 4 }));
    const unbounded = rewardProposals([alike], unsolved, how)[0]!;
    expect(unbounded[0]).toBeCloseTo(-35 / 36);
    const bound = { ...how, leastValidReward: -0.5 };
    expect(rewardProposals([alike], unsolved, bound)[0]!).toEqual(alike.map(() => -0.5));
    // What is above it stays as it is.
    const pair = [made(0, 'a'), made(1, 'a'), { kind: 'invalid', reason: '' } as const];
    expect(rewardProposals([pair], [half, half], bound)).toEqual(rewardProposals([pair], [half, half], how));
  });

  test('a copy of what is known, or no task, is worth less than any task that can be learnt', () => {
    const all: StepProposal[] = [
      { kind: 'known' },
      { kind: 'invalid', reason: '' },
      { kind: 'malformed', reason: '' },
      { kind: 'set-aside', reason: '' },
      { kind: 'unjudged' },
      made(0, 'a'),
    ];
    expect(rewardProposals([all], [half], how)).toEqual([[-0.5, -0.5, -1, null, null, 0.5]]);
  });

  test('of a task that no sample solves is what the spec says, and else as if all did', () => {
    const pair = [made(0, 'a'), made(1, 'b')];
    const [none, one] = [
      { successes: 0, trials: 8 },
      { successes: 1, trials: 8 },
    ];
    expect(rewardProposals([pair], [none, one], how)).toEqual([[0, 0.875]]);
    const paid = { ...how, unsolvedReward: -0.5 };
    expect(rewardProposals([pair], [none, one], paid)).toEqual([[-0.5, 0.875]]);
    expect(rewardProposals([pair], [none, one], { ...paid, learnability: 'r-zero' })).toEqual([[-0.5, 0.25]]);
    const alike = [made(0, 'a'), made(1, 'a')];
    expect(rewardProposals([alike], [none, one], paid)).toEqual([[-1, 0.375]]);
    expect(rewardProposals([alike], [none, one], { ...paid, leastValidReward: -0.5 })).toEqual([
      [-0.5, 0.375],
    ]);
  });

  test('of a task that nobody could judge nothing is said', () => {
    expect(rewardProposals([[made(0, 'a')]], [{ successes: 0, trials: 0 }], how)).toEqual([[null]]);
  });
});
