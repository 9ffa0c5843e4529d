import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Outcome } from '../../../../core/episode/outcome.ts';
import { composeReward, succeeded, succeededToLearn, turnRewards } from '../../../../core/episode/reward.ts';
import { labelOf, modelVerdict, qualityOf, readEpisode } from '../../../../core/reward/reward-model.ts';
import type { RewardSpec } from '../../../../core/schema/reward.ts';

const judged = fc.array(
  fc.record({ predicted: fc.integer({ min: 0, max: 20 }).map((n) => n / 20), success: fc.boolean() }),
  { minLength: 1, maxLength: 40 },
);
const sure = { uncertainty: 0 };

describe('the quality of a reward model', () => {
  test('has the share of pairs of a success and a failure that are in order as its AUC', () => {
    fc.assert(
      fc.property(judged, (all) => {
        const pairs = all.flatMap((good) =>
          all.flatMap((bad) =>
            good.success && !bad.success ? [(Math.sign(good.predicted - bad.predicted) + 1) / 2] : [],
          ),
        );
        const { auc } = qualityOf(all.map((one) => ({ ...one, ...sure, label: Number(one.success) })));
        if (pairs.length === 0) expect(auc).toBeNull();
        else expect(auc).toBeCloseTo(pairs.reduce((a, b) => a + b) / pairs.length, 12);
      }),
    );
  });

  test('counts what is right, how far off it is, and how far probabilities are from frequencies', () => {
    const quality = qualityOf([
      { predicted: 0.9, uncertainty: 0.1, label: 1, success: true },
      { predicted: 0.92, uncertainty: 0.3, label: 0, success: false },
      { predicted: 0.2, uncertainty: 0, label: 0, success: false },
      { predicted: 1, uncertainty: 0, label: 1, success: true },
    ]);
    expect(quality).toMatchObject({ episodes: 4, successes: 2, accuracy: 0.75 });
    expect(quality.brier).toBeCloseTo((0.01 + 0.8464 + 0.04) / 4, 12);
    // Three in the last bin, whose probabilities add up to 2.82 for two successes; one in the bin from 0.2.
    expect(quality.calibrationError).toBeCloseTo((0.82 + 0.2) / 4, 12);
    expect(quality.uncertainty).toBeCloseTo(0.1, 12);
  });
});

describe('the quality of a model of graded scores', () => {
  test('is not off where it knows them, though none of them is a success', () => {
    const scores = [0.25, 0.6, 0.6, 1];
    const quality = qualityOf(
      scores.map((score) => ({ predicted: score, uncertainty: 0, label: score, success: score === 1 })),
    );
    expect(quality).toMatchObject({ successes: 1, auc: 1, brier: 0 });
    expect(quality.calibrationError).toBeCloseTo(0, 12);
  });
});

describe('an ensemble of reward models', () => {
  const said = [
    [0.5, 0.9],
    [0.7, 0.5],
  ];

  test('says the mean less its deviations, or the minimum, at the end of each turn and of the whole', () => {
    const verdict = modelVerdict(said, { by: 'mean-deviation', deviations: 1 });
    expect(verdict.score).toBeCloseTo(0.5, 12);
    expect(verdict.uncertainty).toBeCloseTo(0.2, 12);
    expect(verdict.steps[0]).toBeCloseTo(0.5, 12);
    expect(verdict.members).toEqual([0.9, 0.5]);
    expect(modelVerdict(said, { by: 'minimum', deviations: 1 }).steps).toEqual([0.5, 0.5]);
    expect(modelVerdict([[0.3]], { by: 'mean-deviation', deviations: 5 })).toEqual({
      score: 0.3,
      uncertainty: 0,
      steps: [0.3],
      members: [0.3],
    });
  });
});

describe('an episode as it is read', () => {
  const turn = (start: number, end: number) => ({
    start,
    end,
    text: '',
    action: { kind: 'answer' as const, answer: '' },
  });

  test('is judged behind each of its turns, and one that is empty behind its prompt', () => {
    const two = { tokens: [5, 6, 7, 8], turns: [turn(0, 2), turn(3, 4)] };
    expect(readEpisode([1, 2], two, 16)).toEqual({ tokens: [1, 2, 5, 6, 7, 8, 1], ends: [4, 6] });
    expect(readEpisode([1, 2], { tokens: [], turns: [] }, 16)).toEqual({ tokens: [1, 2, 1], ends: [2] });
    expect(readEpisode([], { tokens: [], turns: [] }, 16).tokens).toHaveLength(1);
  });

  test('never takes more room than the model has, and is never judged before it has begun', () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat(9), { maxLength: 8 }),
        fc.array(fc.nat(9), { minLength: 1, maxLength: 12 }),
        fc.integer({ min: 2, max: 24 }),
        (prompt, tokens, room) => {
          fc.pre(prompt.length + tokens.length <= room);
          const read = readEpisode(prompt, { tokens, turns: [turn(0, tokens.length)] }, room);
          expect(read.tokens.length).toBeLessThanOrEqual(room);
          expect(read.ends.every((end) => end >= 1 && end < read.tokens.length)).toBe(true);
          // Where there is room, all of the episode stands before the place.
          if (prompt.length + tokens.length < room) expect(read.ends[0]).toBe(prompt.length + tokens.length);
        },
      ),
    );
  });
});

describe('what a reward model has judged', () => {
  const components: RewardSpec['components'] = [
    { verifier: 'exact-match', role: 'outcome', weight: 2, gatedBy: null },
    { verifier: 'format', role: 'bonus', weight: 1, gatedBy: 'exact-match' },
  ];
  const rules: RewardSpec['rules'] = [
    { kind: 'process', verifier: 'exact-match', by: 'turns', weight: 0.5, gatedBy: null },
  ];
  const model = { score: 0.75, uncertainty: 0.1, steps: [0.25, 0.75], members: [0.85, 0.65] };
  const outcomeOf = (score: number | null, said = model) =>
    composeReward({ components, rules }, [
      { verifier: 'exact-match', version: '1', score, model: said },
      { verifier: 'format', version: '1', score: 1 },
    ]);

  test('earns what the model says, with gates and turns by it, and counts as success by the verifier', () => {
    const outcome = outcomeOf(0);
    expect(outcome).toMatchObject({ kind: 'scored', reward: 2 * 0.75 + 1 });
    expect(succeeded(components, outcome)).toBe(false);
    expect(succeededToLearn(components, outcome)).toBe(true);
    expect(turnRewards({ components, rules }, outcome)).toEqual([0.125, 0.375]);
    const doubted = outcomeOf(1, { ...model, score: 0.25 });
    expect(doubted).toMatchObject({ reward: 0.5 });
    expect([succeeded(components, doubted), succeededToLearn(components, doubted)]).toEqual([true, false]);
  });

  test('has a reward where the verifier abstains, and then nobody knows whether it is a success', () => {
    const outcome = outcomeOf(null);
    expect(outcome).toMatchObject({ kind: 'scored', reward: 2.5 });
    expect(succeeded(components, outcome)).toBeNull();
  });

  test('is labelled by the verifier alone: by its score, and what was cut off as a failure', () => {
    const reward = { components, truncated: 'train' } as RewardSpec;
    const label = (outcome: Outcome) => labelOf(reward, { outcome } as never);
    expect(label(outcomeOf(0))).toEqual({ label: 0, success: false });
    expect(label(outcomeOf(0.5))).toEqual({ label: 0.5, success: false });
    expect(label(outcomeOf(null))).toBeNull();
    const cut = { ...outcomeOf(1), kind: 'truncated', limit: 'tokens' } as Outcome;
    expect(label(cut)).toEqual({ label: 0, success: false });
    expect(label({ kind: 'failed', boundary: 'infra', reason: '' })).toBeNull();
  });
});
