import { describe, expect, test } from 'vitest';
import { noOutcomes } from '../../../../core/episode/outcome.ts';
import { noBehaviour } from '../../../../core/training/behaviour.ts';
import { figuresOf } from '../../../../core/training/figures.ts';
import { trainStage } from '../../../../core/training/stage.ts';
import type { StepFacts } from '../../../../core/training/step-facts.ts';
import { reportOf } from '../../../../core/training/step-report.ts';
import { go, ScriptedTraining, stageInput, stageSpec } from './scripted-training.ts';
import type { Script } from './scripted-training.ts';

const train = async (script: Script, over: Parameters<typeof stageInput>[0] = {}) => {
  const ports = new ScriptedTraining(script);
  await trainStage(ports, stageInput(over), null, go);
  return ports;
};

describe('what a step leaves', () => {
  test('is what its groups counted, what was given to the learner, what was measured and what was decided', async () => {
    const { facts } = await train({ heldOut: [0.5, 0.96] });
    expect(facts).toHaveLength(2);
    const [first, last] = facts;
    expect(first).toMatchObject({
      stage: 'rl',
      stageStep: 1,
      step: 4,
      checkpoint: { weights: 'rl-1' },
      rollout: {
        episodes: 32,
        rewardSum: 16,
        rewardCount: 32,
        rewardGroups: 4,
        sampledTokens: 320,
        turns: 64,
        outcomes: { ...noOutcomes(), scored: 32 },
        failedGroups: [],
      },
      batch: { sequences: 8, tokens: 80, maskedTokens: 80, degenerateGroups: 0 },
      learner: { gradientNorm: 1, updates: 1 },
      heldOut: { meanReward: 0.5 },
      adjusted: { learningRateFactor: 1, temperatureFactor: 1, keepGroups: 1 },
      alarms: [],
      decision: { kind: 'continue', reason: null, action: null, question: null },
      circumstances: { learnerSeconds: 1 },
    });
    expect(last!.decision).toMatchObject({ kind: 'graduate', action: null, question: null });
  });

  test('has nothing of clocks outside its circumstances', async () => {
    class Later extends ScriptedTraining {
      override now(): number {
        return super.now() ** 2;
      }
    }
    const script: Script = { heldOut: [0.5] };
    const later = new Later(script);
    await trainStage(later, stageInput({ maxSteps: 3 }), null, go);
    const without = (step: StepFacts) => JSON.stringify({ ...step, circumstances: null });
    const { facts } = await train(script, { maxSteps: 3 });
    expect(later.facts.map(without)).toEqual(facts.map(without));
    expect(later.facts[0]!.circumstances).not.toEqual(facts[0]!.circumstances);
  });

  test('names the roll-back that a rule ordered, and the question where a person was asked instead', async () => {
    const ports = await train(
      { heldOut: [0.8, 0.2, 0.2], decisions: ['advance'] },
      { collapse: { ...stageSpec.collapse, maxRollbacks: 1 } },
    );
    expect(ports.facts.map(({ decision }) => [decision.kind, decision.action])).toEqual([
      ['continue', null],
      ['collapse', 'rollback'],
      ['collapse', 'ask'],
    ]);
    expect(ports.facts[2]!.decision.question).toEqual(ports.questions[0]);
    expect(ports.askedBy).toEqual([{ stage: 'rl', stageStep: 3 }]);
  });

  test('is kept of a step in which nothing could be learnt, too', async () => {
    const nothing = { ...noOutcomes(), failed: 8 };
    const { facts } = await train(
      {
        heldOut: [0.5],
        group: () => ({
          outcomes: nothing,
          rewardSum: 0,
          rewardCount: 0,
          trajectories: null,
          failure: 'why',
        }),
        decisions: ['stop'],
      },
      { maxSteps: 1 },
    );
    expect(facts).toMatchObject([
      { batch: null, learner: null, rollout: { failedGroups: ['why', 'why', 'why', 'why'] } },
    ]);
  });
});

describe('the figures of a step', () => {
  const facts = (rollout: Partial<StepFacts['rollout']>): StepFacts => ({
    stage: 'rl',
    stageStep: 1,
    maxSteps: 1,
    step: 1,
    environment: 'calculator',
    checkpoint: { manifest: { key: 'k', sha256: 'x', bytes: 1 }, weights: 'w', step: 1 },
    backend: null,
    rollout: {
      ...noBehaviour(),
      outcomes: noOutcomes(),
      arms: [],
      rewardSum: 0,
      rewardCount: 0,
      sampledTokens: 0,
      sampledLogprob: 0,
      turns: 0,
      failedGroups: [],
      ...rollout,
    },
    batch: null,
    learner: null,
    heldOut: null,
    estimates: {},
    adjusted: null,
    alarms: [],
    decision: { kind: 'continue', reason: null, action: null, question: null },
    circumstances: {
      endedAt: 0,
      seconds: { rollout: 1, tool: 0, verification: 0, learner: 0, data: 0, orchestration: 0 },
      learnerSeconds: null,
      incidents: [],
    },
  });

  test('are means and shares of what was counted', () => {
    const arm = (level: number) => ({ environment: 'calculator', level });
    const figures = figuresOf(
      facts({
        episodes: 4,
        outcomes: { ...noOutcomes(), scored: 3, failed: 1 },
        arms: [
          { arm: arm(1), successes: 1, trials: 1 },
          { arm: arm(2), successes: 0, trials: 2 },
        ],
        rewardSum: 1.5,
        rewardCount: 3,
        rewardGroups: 2,
        equalRewards: 1,
        rewardDeviation: 0.5,
        sampledTokens: 40,
        sampledLogprob: -20,
        turns: 8,
        calls: { add: 3 },
        unknownTools: 1,
        failures: { tool: 1 },
        components: { right: { scored: 3, score: 1, contribution: 1 } },
      }),
    );
    expect(figures).toMatchObject({
      'reward/mean': 0.5,
      'reward/deviation-in-groups': 0.25,
      'reward/equal-groups': 0.5,
      'success/train': 1 / 3,
      'success/train-calculator:1': 1,
      'success/train-calculator:2': 0,
      'policy/entropy': 0.5,
      'episodes/tokens': 10,
      'calls/of-add': 0.75,
      'calls/unknown-tool': 0.25,
      'failures/tool': 0.25,
      'score/right': 1 / 3,
    });
  });

  test('of what verifiers add are means over the episodes that have a reward, whether or not they are trained on', () => {
    const figures = figuresOf(
      facts({
        // Two that were solved, and two that were cut off, one of them with a right answer: `truncated: mask`.
        outcomes: { ...noOutcomes(), scored: 2, truncated: 2 },
        rewardSum: 2,
        rewardCount: 2,
        components: { right: { scored: 4, score: 3, contribution: 3 } },
      }),
    );
    expect(figures).toMatchObject({ 'reward/mean': 1, 'score/right': 0.75, 'contribution/right': 0.75 });
  });

  test('of trees say nothing of how much the rewards of a round differ: they are compared within the tree', () => {
    const rollout = { episodes: 4, rewardGroups: 2, rewardDeviation: 0.5, rewardVariance: 0.25 };
    const batch = { sequences: 4, tokens: 8, maskedTokens: 4, degenerateGroups: 1, trees: 2 };
    const of = figuresOf({ ...facts(rollout), batch });
    expect(of['reward/equal-groups']).toBe(0.5);
    expect(Object.keys(of)).not.toContain('reward/deviation-in-groups');
    expect(Object.keys(figuresOf(facts(rollout)))).toContain('reward/deviation-in-groups');
  });

  test('of staleness are of the tokens that a step has trained on', () => {
    const of = (rollout: Partial<StepFacts['rollout']>) =>
      Object.fromEntries(
        Object.entries(figuresOf(facts(rollout))).filter(([name]) => name.startsWith('staleness/')),
      );
    const sampledTokens = 40;
    expect(of({ sampledTokens, staleness: 2, staleUpdates: 5, sampledByStaleness: [10, 0, 30] })).toEqual({
      'staleness/mean': 1.5,
      'staleness/most': 2,
      'staleness/most-updates': 5,
      'staleness/share-of-0': 0.25,
      'staleness/share-of-1': 0,
      'staleness/share-of-2': 0.75,
    });
    // All samples of a pipelined step are as old.
    expect(of({ sampledTokens, staleness: 1 })).toMatchObject({
      'staleness/mean': 1,
      'staleness/share-of-1': 1,
    });
    expect(of({ sampledTokens, staleness: 1, givenUp: true })).toEqual({});
    expect(of({ sampledTokens })).toEqual({});
  });

  test('of waiting are seconds, where nobody samples on policy', () => {
    const step = facts({});
    expect(
      figuresOf({
        ...step,
        circumstances: { ...step.circumstances, waitedForOldest: 2, idle: { rollout: 3, learner: 4 } },
      }),
    ).toMatchObject({ 'idle/rollout': 3, 'idle/learner': 4, 'idle/waited-for-oldest': 2 });
  });

  test('have every number of its report, and what an alarm has adjusted', async () => {
    const { facts: steps } = await train({ heldOut: [0.5] }, { maxSteps: 1 });
    const [step] = steps;
    const report = reportOf(step!);
    const figures = figuresOf(step!);
    expect(figures).toMatchObject({
      'reward/mean': report.meanReward,
      'success/train': report.trainSuccess,
      'success/held-out': 0.5,
      'graduation/error-left': report.heldOut!.errorLeft,
      'batch/groups-without-contrast': report.degenerateGroups,
      'episodes/sampled-tokens': report.sampledTokens,
      'episodes/taught-share': report.taughtTokens! / report.sampledTokens,
      'policy/entropy': report.entropy,
      'learner/seconds': report.metrics!.seconds,
      'learner/updates': report.metrics!.updates,
      'adjusted/learning-rate-factor': 1,
      'adjusted/temperature-factor': 1,
      'adjusted/keep-groups': 1,
    });
    expect(figures['episodes/turns']! * figures['episodes/count']!).toBeCloseTo(report.turns, 9);
    for (const [arm, { successes, trials }] of Object.entries(report.estimates))
      expect(figures[`estimate/${arm}`]).toBe(successes / trials);
    expect(Object.keys(report.estimates)).not.toEqual([]);
  });

  test('that nothing is known of are left out rather than zero', () => {
    const figures = figuresOf(facts({}));
    expect(Object.keys(figures).filter((name) => !/^(seconds|alarms)/.test(name))).toEqual([]);
    expect(Object.values(figures).every(Number.isFinite)).toBe(true);
  });
});
