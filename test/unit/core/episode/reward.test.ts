import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { trainableReward } from '../../../../core/episode/outcome.ts';
import type { Outcome } from '../../../../core/episode/outcome.ts';
import { composeReward, succeeded, turnRewards, withVerdict } from '../../../../core/episode/reward.ts';
import type { Composition, VerdictOfVerifier } from '../../../../core/episode/reward.ts';
import type { RewardComponentSpec } from '../../../../core/schema/reward.ts';

const SPEC: RewardComponentSpec[] = [
  { verifier: 'exact', role: 'outcome', weight: 1, gatedBy: null },
  { verifier: 'format', role: 'bonus', weight: 0.05, gatedBy: 'exact' },
  { verifier: 'shaping', role: 'penalty', weight: 0.2, gatedBy: null },
];

function verdicts(exact: number | null, format: number | null, shaping: number | null): VerdictOfVerifier[] {
  const of = (verifier: string, score: number | null) => ({ verifier, version: '1', score });
  return [of('exact', exact), of('format', format), of('shaping', shaping)];
}
const contributions = (outcome: ReturnType<typeof composeReward>) =>
  outcome.kind === 'scored' ? outcome.components.map(({ contribution }) => contribution) : null;

describe('a reward', () => {
  test.each<[string, ReturnType<typeof verdicts>, number[]]>([
    ['all full', verdicts(1, 1, 1), [1, 0.05, 0]],
    ['a bonus in part', verdicts(1, 0.5, 1), [1, 0.025, 0]],
    ['a penalty in part', verdicts(1, 1, 0.5), [1, 0.05, -0.1]],
    ['a closed gate', verdicts(0, 1, 1), [0, 0, 0]],
    ['a gate that is nearly open', verdicts(0.99, 1, 1), [0.99, 0, 0]],
    ['a full score up to rounding', verdicts(1 - 1e-12, 1, 1), [1 - 1e-12, 0.05, 0]],
    ['the worst', verdicts(0, 0, 0), [0, 0, -0.2]],
    ['a bonus that abstained', verdicts(1, null, 1), [1, 0, 0]],
    ['a penalty that abstained', verdicts(1, 1, null), [1, 0.05, 0]],
  ])('of %s is the sum of its parts', (_, verdicts, expected) => {
    const outcome = composeReward({ components: SPEC }, verdicts);
    contributions(outcome)!.forEach((part, i) => expect(part).toBeCloseTo(expected[i]!, 12));
    expect(trainableReward(outcome, 'mask')).toBeCloseTo(
      expected.reduce((a, b) => a + b),
      12,
    );
  });

  test('is none where the outcome verifier abstained, whatever the others say', () => {
    const found = verdicts(null, 1, 0);
    found[0]!.evidence = 'the reference solver crashed';
    expect(composeReward({ components: SPEC }, found)).toEqual({
      kind: 'abstained',
      reason: 'the reference solver crashed',
    });
    expect(composeReward({ components: SPEC.toReversed() }, found)).toMatchObject({ kind: 'abstained' });
  });

  test('a gate that abstained stays closed, also for a penalty', () => {
    const gated: RewardComponentSpec[] = [SPEC[0]!, SPEC[1]!, { ...SPEC[2]!, gatedBy: 'format' }];
    expect(contributions(composeReward({ components: gated }, verdicts(1, null, 0)))).toEqual([1, 0, 0]);
    expect(contributions(composeReward({ components: gated }, verdicts(1, 1, 0)))).toEqual([1, 0.05, -0.2]);
  });

  test('keeps every component with its verdict, so that it can be composed again', () => {
    const found = verdicts(1, 0.5, null);
    found[2]!.evidence = 'threw: no';
    const outcome = composeReward({ components: SPEC }, found);
    if (outcome.kind !== 'scored') throw new Error('unexpected');
    expect(outcome.components).toMatchObject(found);
    expect(composeReward({ components: SPEC }, outcome.components)).toEqual(outcome);
  });

  test('is bounded by the weights, and a better verdict never lowers it', () => {
    const score = fc.double({ min: 0, max: 1, noNaN: true });
    fc.assert(
      fc.property(fc.tuple(score, score, score), fc.nat(2), score, (scores, at, better) => {
        const reward = (of: number[]) => {
          const outcome = composeReward({ components: SPEC }, verdicts(of[0]!, of[1]!, of[2]!));
          return outcome.kind === 'scored' ? outcome.reward : Number.NaN;
        };
        const before = reward(scores);
        expect(before >= -0.2 - 1e-12 && before <= 1.05 + 1e-12).toBe(true);
        const after = reward(scores.with(at, Math.max(scores[at]!, better)));
        expect(after).toBeGreaterThanOrEqual(before - 1e-12);
      }),
    );
  });

  test('cannot be composed when a verdict is missing', () => {
    expect(() => composeReward({ components: SPEC }, verdicts(1, 1, 1).slice(0, 2))).toThrow(
      'no verdict of shaping',
    );
  });
});

describe('success', () => {
  const truncated: Outcome = { kind: 'truncated', limit: 'tokens', reward: 1, components: [] };
  const failed: Outcome = { kind: 'failed', boundary: 'infra', reason: 'x' };

  test('is what the outcome verifier says, not the reward', () => {
    expect(succeeded(SPEC, composeReward({ components: SPEC }, verdicts(1, 0, 0)))).toBe(true);
    expect(succeeded(SPEC, composeReward({ components: SPEC }, verdicts(0.9, 1, 1)))).toBe(false);
    expect(succeeded(SPEC, truncated)).toBe(false);
  });

  test('cannot be told of what was not judged', () => {
    for (const outcome of [failed, composeReward({ components: SPEC }, verdicts(null, 1, 1))]) {
      expect(succeeded(SPEC, outcome)).toBeNull();
    }
    expect(succeeded(SPEC, { kind: 'pending', tier: 'world' })).toBeNull();
  });

  test('is not where a call made its tool fail, which is never a zero all the same', () => {
    const atTool: Outcome = { kind: 'failed', boundary: 'tool', reason: 'x' };
    expect(succeeded(SPEC, atTool)).toBe(false);
    expect(trainableReward(atTool, 'train')).toBeNull();
    for (const boundary of ['environment', 'verifier', 'policy', 'infra'] as const) {
      expect(succeeded(SPEC, { ...atTool, boundary })).toBeNull();
    }
  });

  test('only what was judged is trained on, and what was truncated as the spec says', () => {
    const others: Outcome[] = [failed, { kind: 'pending', tier: 'fast' }, { kind: 'abstained', reason: 'x' }];
    for (const outcome of others) expect(trainableReward(outcome, 'train')).toBeNull();
    expect(trainableReward(truncated, 'train')).toBe(1);
    expect(trainableReward(truncated, 'mask')).toBeNull();
  });
});

describe('another verdict in place of one', () => {
  const outcome = composeReward({ components: SPEC }, verdicts(1, 1, 0.5));
  if (outcome.kind !== 'scored') throw new Error('unexpected');

  test('changes what it counts for, and what it is the gate of, and nothing else', () => {
    const higher = { verifier: 'exact', version: '2', score: 0.9, worth: 0.4, passed: true };
    const after = withVerdict(
      { components: SPEC },
      { ...outcome, kind: 'truncated', limit: 'turns' },
      higher,
    );
    expect(after).toMatchObject({ kind: 'truncated', limit: 'turns' });
    if (after.kind !== 'truncated') throw new Error('unexpected');
    // It passed, so the bonus behind it stays.
    expect(after.reward).toBeCloseTo(0.4 + 0.05 - 0.1, 12);
    expect(after.components[0]).toEqual({ ...higher, contribution: 0.4 });
    expect(after.components.slice(1)).toEqual(outcome.components.slice(1));
  });

  test('that is an abstention leaves nothing to reward', () => {
    const silent = { verifier: 'exact', version: '2', score: null, evidence: 'no shape' };
    expect(withVerdict({ components: SPEC }, outcome, silent)).toEqual({
      kind: 'abstained',
      reason: 'no shape',
    });
  });
});

test('what nobody can confirm is no success, and what was missed this time is neither', () => {
  expect(succeeded(SPEC, { kind: 'abstained', reason: 'x', ofSubject: true })).toBe(false);
  expect(succeeded(SPEC, { kind: 'abstained', reason: 'x' })).toBeNull();
});

describe('a rule', () => {
  const reward: Composition = {
    components: SPEC,
    rules: [
      { kind: 'overlong', limit: 20, buffer: 10, weight: 0.5, gatedBy: null },
      { kind: 'diversity', of: 'answer', by: 'count', weight: 0.2, gatedBy: 'exact' },
    ],
  };
  const of = (verifier: string, score: number | null) => ({ verifier, version: '1', score });
  const ruled = (length: number | null, diversity: number | null) => [
    of('rule:overlong', length),
    of('rule:diversity', diversity),
  ];

  test('is a component among the others: lengths take off, all else pays, and gates hold', () => {
    const right = composeReward(reward, [...verdicts(1, 1, 1), ...ruled(0.4, 0.5)]);
    contributions(right)!.forEach((part, i) => expect(part).toBeCloseTo([1, 0.05, 0, -0.3, 0.1][i]!, 12));
    const wrong = composeReward(reward, [...verdicts(0, 1, 1), ...ruled(0.4, 1)]);
    contributions(wrong)!.forEach((part, i) => expect(part).toBeCloseTo([0, 0, 0, -0.3, 0][i]!, 12));
  });

  test('that has not spoken is left out, as in what is held out', () => {
    expect(contributions(composeReward(reward, verdicts(1, 1, 1)))).toHaveLength(3);
  });

  test('keeps what it said when a dearer verdict comes, and its gate follows', () => {
    const outcome = composeReward(reward, [...verdicts(0, 1, 1), ...ruled(1, 1)]);
    if (outcome.kind !== 'scored') throw new Error('unexpected');
    const after = withVerdict(reward, outcome, of('exact', 1));
    expect(after).toMatchObject({ kind: 'scored', components: [{}, {}, {}, {}, { contribution: 0.2 }] });
  });
});

describe('an outcome of weight 0', () => {
  const specs: RewardComponentSpec[] = [{ ...SPEC[0]!, weight: 0 }];
  const reward: Composition = {
    components: specs,
    rules: [{ kind: 'agreement', by: 'majority', weight: 1, gatedBy: null }],
  };
  const silent = { verifier: 'exact', version: '1', score: null };
  const agreed = { verifier: 'rule:agreement', version: '1', score: 1 };

  test('is measured, and something else teaches', () => {
    const outcome = composeReward(reward, [{ ...silent, score: 0 }, agreed]);
    expect(outcome).toMatchObject({ kind: 'scored', reward: 1 });
    expect(succeeded(specs, outcome)).toBe(false);
  });

  test('that nobody knows is no obstacle to what needs no label, and no failure', () => {
    const outcome = composeReward(reward, [silent, agreed]);
    expect(outcome).toMatchObject({ kind: 'scored', reward: 1 });
    expect(succeeded(specs, outcome)).toBeNull();
  });

  test('that nobody knows abstains where no label stands in for it', () => {
    expect(composeReward(reward, [silent]).kind).toBe('abstained');
    expect(composeReward(reward, [silent, { ...agreed, score: null }]).kind).toBe('abstained');
  });
});

describe('the rewards of turns', () => {
  const reward: Composition = {
    components: [SPEC[0]!, { verifier: 'prm', role: 'bonus', weight: 0, gatedBy: null }],
    rules: [{ kind: 'process', verifier: 'prm', by: 'turns', weight: 0.1, gatedBy: null }],
  };
  const said = (exact: number, steps?: number[]): VerdictOfVerifier[] => [
    { verifier: 'exact', version: '1', score: exact },
    { verifier: 'prm', version: '1', score: 0.5, ...(steps && { steps }) },
    { verifier: 'rule:process:prm', version: '1', score: 0.5 },
  ];

  test('are weight × step, and no part of the reward of the whole', () => {
    const outcome = composeReward(reward, said(1, [1, 0, 0.5]));
    expect(outcome).toMatchObject({
      reward: 1,
      components: [{}, { steps: [1, 0, 0.5] }, { contribution: 0 }],
    });
    expect(turnRewards(reward, outcome)).toEqual([0.1, 0, 0.05]);
  });

  test('are none where no step was scored, or nothing is paid by turns', () => {
    expect(turnRewards(reward, composeReward(reward, said(1)))).toBeNull();
    const whole: Composition = { ...reward, rules: [{ ...reward.rules![0]!, by: 'mean' } as never] };
    expect(turnRewards(whole, composeReward(whole, said(1, [1, 0])))).toBeNull();
    expect(turnRewards(reward, { kind: 'pending', tier: 'world' })).toBeNull();
  });

  test('are 0 behind a gate that is closed', () => {
    const gated: Composition = { ...reward, rules: [{ ...reward.rules![0]!, gatedBy: 'exact' }] };
    expect(turnRewards(gated, composeReward(gated, said(0, [1, 1])))).toEqual([0, 0]);
    expect(turnRewards(gated, composeReward(gated, said(1, [1, 1])))).toEqual([0.1, 0.1]);
  });
});

test('what a verifier counts for never takes the place of a reward model that judges alone', () => {
  const model = { score: 0.25, uncertainty: 0, steps: [0.25], members: [0.25] };
  const reward = { components: [{ verifier: 'graded', role: 'outcome' as const, weight: 1, gatedBy: null }] };
  const of = { verifier: 'graded', version: '1', score: 1, worth: 0.75, model };
  expect(composeReward(reward, [of])).toMatchObject({ reward: 0.25 });
  // On a ladder the worth is what has been made of the model's word.
  expect(composeReward(reward, [{ ...of, passed: true }])).toMatchObject({ reward: 0.75 });
});
