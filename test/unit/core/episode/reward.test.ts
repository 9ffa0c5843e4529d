import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { trainableReward } from '../../../../core/episode/outcome.ts';
import type { Outcome } from '../../../../core/episode/outcome.ts';
import { composeReward, succeeded, withVerdict } from '../../../../core/episode/reward.ts';
import type { VerdictOfVerifier } from '../../../../core/episode/reward.ts';
import type { RewardComponentSpec } from '../../../../core/spec.ts';

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
  ])('of %s is the sum of its parts', (_, said, expected) => {
    const outcome = composeReward(SPEC, said);
    contributions(outcome)!.forEach((part, i) => expect(part).toBeCloseTo(expected[i]!, 12));
    expect(trainableReward(outcome, 'mask')).toBeCloseTo(
      expected.reduce((a, b) => a + b),
      12,
    );
  });

  test('is none where the outcome verifier abstained, whatever the others say', () => {
    const said = verdicts(null, 1, 0);
    said[0]!.evidence = 'the reference solver crashed';
    expect(composeReward(SPEC, said)).toEqual({ kind: 'abstained', reason: 'the reference solver crashed' });
    expect(composeReward(SPEC.toReversed(), said)).toMatchObject({ kind: 'abstained' });
  });

  test('a gate that abstained stays closed, also for a penalty', () => {
    const gated: RewardComponentSpec[] = [SPEC[0]!, SPEC[1]!, { ...SPEC[2]!, gatedBy: 'format' }];
    expect(contributions(composeReward(gated, verdicts(1, null, 0)))).toEqual([1, 0, 0]);
    expect(contributions(composeReward(gated, verdicts(1, 1, 0)))).toEqual([1, 0.05, -0.2]);
  });

  test('keeps every component with its verdict, so that it can be composed again', () => {
    const said = verdicts(1, 0.5, null);
    said[2]!.evidence = 'threw: no';
    const outcome = composeReward(SPEC, said);
    if (outcome.kind !== 'scored') throw new Error('unexpected');
    expect(outcome.components).toMatchObject(said);
    expect(composeReward(SPEC, outcome.components)).toEqual(outcome);
  });

  test('is bounded by the weights, and a better verdict never lowers it', () => {
    const score = fc.double({ min: 0, max: 1, noNaN: true });
    fc.assert(
      fc.property(fc.tuple(score, score, score), fc.nat(2), score, (scores, at, better) => {
        const reward = (of: number[]) => {
          const outcome = composeReward(SPEC, verdicts(of[0]!, of[1]!, of[2]!));
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
    expect(() => composeReward(SPEC, verdicts(1, 1, 1).slice(0, 2))).toThrow('no verdict of shaping');
  });
});

describe('success', () => {
  const truncated: Outcome = { kind: 'truncated', limit: 'tokens', reward: 1, components: [] };
  const failed: Outcome = { kind: 'failed', boundary: 'infra', reason: 'x' };

  test('is what the outcome verifier says, not the reward', () => {
    expect(succeeded(SPEC, composeReward(SPEC, verdicts(1, 0, 0)))).toBe(true);
    expect(succeeded(SPEC, composeReward(SPEC, verdicts(0.9, 1, 1)))).toBe(false);
    expect(succeeded(SPEC, truncated)).toBe(false);
  });

  test('cannot be told of what was not judged', () => {
    for (const outcome of [failed, composeReward(SPEC, verdicts(null, 1, 1))]) {
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
  const outcome = composeReward(SPEC, verdicts(1, 1, 0.5));
  if (outcome.kind !== 'scored') throw new Error('unexpected');

  test('changes what it counts for, and what it is the gate of, and nothing else', () => {
    const dearer = { verifier: 'exact', version: '2', score: 0.9, worth: 0.4, passed: true };
    const after = withVerdict(SPEC, { ...outcome, kind: 'truncated', limit: 'turns' }, dearer);
    expect(after).toMatchObject({ kind: 'truncated', limit: 'turns' });
    if (after.kind !== 'truncated') throw new Error('unexpected');
    // It passed, so the bonus behind it stays.
    expect(after.reward).toBeCloseTo(0.4 + 0.05 - 0.1, 12);
    expect(after.components[0]).toEqual({ ...dearer, contribution: 0.4 });
    expect(after.components.slice(1)).toEqual(outcome.components.slice(1));
  });

  test('that is an abstention leaves nothing to reward', () => {
    const silent = { verifier: 'exact', version: '2', score: null, evidence: 'no shape' };
    expect(withVerdict(SPEC, outcome, silent)).toEqual({ kind: 'abstained', reason: 'no shape' });
  });
});

test('what nobody can confirm is no success, and what was missed this time is neither', () => {
  expect(succeeded(SPEC, { kind: 'abstained', reason: 'x', ofSubject: true })).toBe(false);
  expect(succeeded(SPEC, { kind: 'abstained', reason: 'x' })).toBeNull();
});
