import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { evaluate, evaluationTasks, summarize } from '../../../../core/training/evaluation.ts';
import { armName } from '../../../../core/names.ts';
import { noOutcomes } from '../../../../core/episode/outcome.ts';
import { noBehaviour } from '../../../../core/training/behaviour.ts';
import type { EvaluationRequest } from '../../../../core/requests/evaluation.ts';
import type { GroupRequest } from '../../../../core/requests/rollout.ts';
import type { GroupResult } from '../../../../core/requests/verification.ts';
import { tierSpec } from '../../../support/tier-specs.ts';
import { arm, checkpoint, reward, sampling, ScriptedTraining } from './scripted-training.ts';

const request = {
  run: 'run',
  seed: 1,
  name: 'before',
  step: 0,
  checkpoint: checkpoint('c'),
  arms: [arm(1), arm(2), arm(3)],
  tasks: 300,
  split: 'test' as const,
  sampling,
  reward,
};

describe('the tasks of an evaluation', () => {
  test('are in equal parts over the arms, each task once, the first of the split', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 6 }), fc.nat(400), (levels, count) => {
        const arms = Array.from({ length: levels }, (_, i) => arm(i + 1));
        const tasks = evaluationTasks({ arms, tasks: count, split: 'heldout' });
        expect(tasks).toHaveLength(count);
        for (const { level } of arms) {
          const indexes = tasks.filter((task) => task.level === level).map(({ index }) => index);
          expect(indexes).toEqual(indexes.map((_, i) => i));
          expect(
            indexes.length === Math.floor(count / levels) || indexes.length === Math.ceil(count / levels),
          ).toBe(true);
        }
        expect(tasks.every(({ split }) => split === 'heldout')).toBe(true);
      }),
    );
  });

  test('are all rolled out once, one sample of each, in groups with a number of their own', async () => {
    const ports = new ScriptedTraining({ heldOut: [] });
    await evaluate(ports, request);
    const groups = ports.rollouts[0]!;
    expect(groups.flatMap(({ tasks }) => tasks)).toEqual(evaluationTasks(request));
    expect(new Set(groups.map(({ group }) => group)).size).toBe(groups.length);
    expect(groups.length).toBeGreaterThan(1);
    expect(groups.every(({ samples, stage }) => samples === 1 && stage === 'before')).toBe(true);
  });
});

describe('an evaluation', () => {
  const ladder = (evaluateBy: string) => ({
    ...request,
    reward: { ...reward, ladder: { verifier: 'cheap', passAtLeast: 0.5 } },
    verification: {
      rungs: [tierSpec('cheap', 'simulation'), tierSpec('dear', 'simulation')],
      offerLateFor: 0,
      counts: 'computations' as const,
      evaluateBy,
    },
  });

  test('counts what the tier says that the verification names', async () => {
    const training = new ScriptedTraining({ heldOut: [] });
    const judged: string[] = [];
    const verifyAbove = async (asked: EvaluationRequest, groups: readonly GroupResult[]) => {
      judged.push(asked.verification!.evaluateBy);
      return groups.map((group) => ({ ...group, arms: [{ arm: arm(1), successes: 1, trials: 8 }] }));
    };
    const ports = { rollout: training.rollout.bind(training), verifyAbove };
    const { arms } = await evaluate(ports, ladder('dear'));
    expect(arms).toEqual([{ arm: arm(1), successes: 3, trials: 24 }]);
    expect((await evaluate(ports, ladder('cheap'))).arms).toMatchObject([{ successes: 4 }, {}, {}]);
    expect(judged).toEqual(['dear']);
    await expect(evaluate(training, ladder('dear'))).rejects.toThrow('dear needs workflows');
  });

  const failing = (group: GroupRequest): Partial<GroupResult> => ({
    trajectories: null,
    failure: 'the store is away',
    arms: [],
    outcomes: { ...noOutcomes(), failed: group.tasks.length },
    rewardSum: 0,
    rewardCount: 0,
  });

  test('of which a group failed has fewer trials, not more failures', async () => {
    const ports = new ScriptedTraining({
      heldOut: [],
      group: (group) => (group.group === 1 ? failing(group) : {}),
    });
    const { arms, meanReward, outcomes } = await evaluate(ports, request);
    // Two of three groups came back, each with 4 of 8 and a mean reward of 0.5.
    expect(arms).toEqual([
      { arm: arm(1), successes: 4, trials: 8 },
      { arm: arm(2), successes: 4, trials: 8 },
    ]);
    expect(meanReward).toBe(0.5);
    expect(outcomes).toMatchObject({ scored: 16, failed: 128 });
  });

  test('counts what failed at a tool as no success, and says how many those were', async () => {
    const ports = new ScriptedTraining({
      heldOut: [],
      group: (group) => ({
        arms: [{ arm: arm(1), successes: 3, trials: 8, ...(group.group > 0 && { toolFailures: 2 }) }],
      }),
    });
    expect((await evaluate(ports, request)).arms).toEqual([
      { arm: arm(1), successes: 9, trials: 24, toolFailures: 4 },
    ]);
  });

  test('that could judge nothing has no trials', async () => {
    const { arms, outcomes } = await evaluate(new ScriptedTraining({ heldOut: [], group: failing }), request);
    expect(arms).toEqual([]);
    expect(outcomes.failed).toBe(300);
  });
});

test('the sum over groups does not depend on their order, and keeps every trial', () => {
  const result = fc.record({
    arms: fc.array(
      fc
        .record({ arm: fc.integer({ min: 1, max: 12 }).map(arm), trials: fc.nat(16), part: fc.nat(16) })
        .map(({ arm, trials, part }) => ({ arm, trials, successes: Math.min(trials, part) })),
      { maxLength: 4 },
    ),
    scored: fc.nat(16),
    failed: fc.nat(16),
    rewardSum: fc.integer({ min: -10, max: 10 }),
    rewardCount: fc.nat(16),
    tokens: fc.nat(100),
  });
  const results = fc.array(
    result.map(({ arms, scored, failed, rewardSum, rewardCount, tokens }): GroupResult => ({
      trajectories: null,
      arms,
      outcomes: { ...noOutcomes(), scored, failed },
      rewardSum,
      rewardCount,
      sampledTokens: tokens,
      sampledLogprob: -tokens,
      turns: 1,
      behaviour: { ...noBehaviour(), episodes: scored + failed, longest: tokens, calls: { add: scored } },
      spans: [],
    })),
  );
  fc.assert(
    fc.property(results, (groups) => {
      const whole = summarize(groups);
      expect(summarize(groups.toReversed())).toEqual(whole);
      const names = whole.arms.map((tally) => armName(tally.arm));
      expect(new Set(names).size).toBe(names.length);
      const trials = groups.flatMap(({ arms }) => arms).reduce((sum, tally) => sum + tally.trials, 0);
      expect(whole.arms.reduce((sum, tally) => sum + tally.trials, 0)).toBe(trials);
      const sum = (of: (group: GroupResult) => number): number =>
        groups.reduce((total, group) => total + of(group), 0);
      expect(whole.behaviour).toMatchObject({
        episodes: sum(({ behaviour }) => behaviour.episodes),
        longest: Math.max(0, ...groups.map(({ behaviour }) => behaviour.longest)),
        calls: groups.length === 0 ? {} : { add: sum(({ outcomes }) => outcomes.scored) },
      });
      expect(whole.outcomes.failed).toBe(groups.reduce((sum, group) => sum + group.outcomes.failed, 0));
    }),
  );
});
