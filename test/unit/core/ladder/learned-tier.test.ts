import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { ModelVerdict } from '../../../../core/episode/outcome.ts';
import { emptyAccount } from '../../../../core/ladder/budget.ts';
import { addPairs, noCalibration } from '../../../../core/ladder/calibration.ts';
import type { Calibration } from '../../../../core/ladder/calibration.ts';
import { ladderOf, learnedVerdict } from '../../../../core/ladder/learned-tier.ts';
import { decideCandidate, planTier } from '../../../../core/ladder/policy.ts';
import type { PlanCandidate, TierScore } from '../../../../core/ladder/policy.ts';
import { standingOf } from '../../../../core/ladder/standing.ts';
import { modelVerdict } from '../../../../core/reward/reward-model.ts';
import { sha256Hex } from '../../../../store/digest.ts';
import { tierSpec } from '../../../support/tier-specs.ts';

const tiers = [tierSpec('valid', 'fast', { passAtLeast: 1 }), tierSpec('simulated', 'simulation')];
const settings = { stage: 'judge', uncertaintyAtLeast: 0.3, audit: 0, seed: 7 };

/** Pairs along the diagonal, give or take so much. */
const known = (off: number, count = 200): Calibration =>
  addPairs(
    noCalibration(),
    Array.from({ length: count }, (_, i) => {
      const cheap = (i % 11) / 10;
      const dear = cheap + (i % 2 === 0 ? off : -off);
      return { cheap, dear, cheapPassed: cheap >= 0.5, dearPassed: dear >= 0.5 };
    }),
  );
const ladderWith = (line: Calibration, learned = settings) => ({
  rungs: tiers,
  calibrations: [noCalibration(), line],
  learned,
});
const said = (...members: number[]): ModelVerdict =>
  modelVerdict(
    members.map((one) => [one]),
    { by: 'mean-deviation', deviations: 1 },
  );
const candidate = (
  verdict: ModelVerdict,
  { id = 'a', above = undefined as TierScore, audit = 0 } = {},
): PlanCandidate => {
  const learned = learnedVerdict(verdict, id, { ...settings, audit });
  return { id, scores: [learned.expected, above], digests: [null, id], learned };
};
const decide = (one: PlanCandidate, line: Calibration) => decideCandidate(one, ladderWith(line), () => true);

test('what all models say costs nothing, and what they disagree about is escalated, whether it would pass or not', () => {
  const line = known(0.05);
  expect(decide(candidate(said(0.9, 0.92)), line)).toMatchObject({ kind: 'accept', tier: 0 });
  expect(decide(candidate(said(0.1, 0.12)), line)).toMatchObject({ kind: 'reject', tier: 0 });
  expect(decide(candidate(said(1, 0.1)), line)).toMatchObject({ kind: 'escalate', tier: 1 });
  expect(decide(candidate(said(0.7, 0)), line)).toMatchObject({ kind: 'escalate', tier: 1 });
});

test('a model of which nobody knows how far it is off is sure of nothing, and neither is one that is far off', () => {
  for (const members of [[0.9, 0.9], [0.1, 0.1], [1]]) {
    expect(decide(candidate(said(...members)), noCalibration()).kind).toBe('escalate');
    expect(decide(candidate(said(...members)), known(0.4)).kind).toBe('escalate');
    expect(decide(candidate(said(...members)), known(0.05)).kind).not.toBe('escalate');
  }
});

test('the uncertainty holds both how far models are off and how far apart, and grows with either', () => {
  fc.assert(
    fc.property(fc.double({ min: 0, max: 0.5, noNaN: true }), (apart) => {
      const at = (off: number, by: number) =>
        decide(candidate(said(0.5 - by, 0.5 + by)), known(off)).uncertainty;
      expect(at(0.05, apart)).toBeCloseTo(Math.hypot(at(0.05, 0), apart), 12);
      expect(at(0.3, apart)).toBeGreaterThan(at(0.05, apart));
    }),
  );
});

test('a budget of nothing asks nobody, and the word of the model stands', () => {
  const all = [candidate(said(1, 0.1)), candidate(said(0.9, 0.9), { id: 'b' })];
  const money = {
    budget: { count: 0 },
    account: emptyAccount(),
    cost: { seconds: 1, usd: 0 },
    most: 10,
    underWay: new Set<string>(),
  };
  const plan = planTier(1, all, ladderWith(known(0.05)), money);
  expect(plan.asks).toEqual([]);
  expect(plan.decisions.map((one) => one?.kind ?? null)).toEqual(['defer', null]);
  const [first] = all;
  const { calibrations, rungs } = ladderOf(first!.learned, ladderWith(known(0.05)));
  // 0.55 less its deviation is no pass.
  expect(standingOf(first!.scores, { rungs, calibrations })).toMatchObject({
    kind: 'judged',
    tier: 0,
    passed: false,
  });
});

test('part of what a model is sure of is audited, the same candidates whenever they are looked at', () => {
  const ids = Array.from({ length: 2000 }, (_, i) => `rl/1/group-0/${i}/0`);
  const line = known(0.05);
  const audited = (id: string) =>
    decide(candidate(said(0.99, 0.99), { id, audit: 0.1 }), line).kind === 'escalate';
  const drawn = ids.filter(audited);
  expect(drawn.length).toBeGreaterThan(140);
  expect(drawn.length).toBeLessThan(260);
  expect(ids.filter(audited)).toEqual(drawn);
});

test('a budget for few is spent on audits first, of what a model rejects as of what it passes', () => {
  const sure = Array.from({ length: 400 }, (_, i) => ({
    ...candidate(i % 2 === 0 ? said(0.99, 0.99) : said(0.01, 0.01), {
      id: `rl/1/group-0/${i}/0`,
      audit: 0.1,
    }),
    digests: [null, sha256Hex(new TextEncoder().encode(String(i)))],
  }));
  const unsure = Array.from({ length: 40 }, (_, i) => candidate(said(1, 0.9, 0.1), { id: `unsure-${i}` }));
  const money = {
    budget: { count: 20 },
    account: emptyAccount(),
    cost: { seconds: 1, usd: 0 },
    most: 100,
    underWay: new Set<string>(),
  };
  const { asks } = planTier(1, [...unsure, ...sure], ladderWith(known(0.05)), money);
  const asked = sure.filter(({ digests }) => asks.some(({ digest }) => digest === digests[1]));
  expect(asks).toHaveLength(20);
  expect(asked).toHaveLength(20);
  expect(asked.every(({ learned }) => learned!.audited)).toBe(true);
  const rejected = asked.filter(({ learned }) => !learned!.passed).length;
  expect(rejected).toBeGreaterThan(3);
  expect(rejected).toBeLessThan(17);
});

test('where nothing is above, the reason speaks of no threshold that a model does not have', () => {
  const alone = { ...candidate(said(0.9, 0.9)), scores: [0.9, 'nothing to ask'] as const };
  const decision = decide(alone, known(0.05));
  expect(decision).toMatchObject({
    kind: 'accept',
    reason: 'model:judge said 0.9, a pass; no tier is above',
  });
});

const standing = (one: PlanCandidate, line = known(0.05), abstains: 'zero' | 'abstained' = 'zero') => {
  const [lowest, above] = tiers;
  const ladder = { ...ladderWith(line), rungs: [lowest!, { ...above!, abstains }] };
  return standingOf(one.scores, ladderOf(one.learned, ladder));
};

test('a verdict of a higher tier replaces that of the model, in either direction', () => {
  expect(standing(candidate(said(0.99, 0.99), { above: 0 }))).toMatchObject({
    tier: 1,
    worth: 0,
    passed: false,
  });
  expect(standing(candidate(said(0.01, 0.01), { above: 1 }))).toMatchObject({
    tier: 1,
    worth: 1,
    passed: true,
  });
});

test('what a higher tier was asked about and cannot judge is worth nothing, though the model half believes in it', () => {
  const hiding = candidate(said(0.9, 0.08), { above: 'abstained' });
  expect(standing(hiding)).toMatchObject({ worth: 0, passed: false, silent: 1 });
  expect(standing(hiding, known(0.05), 'abstained')).toMatchObject({ kind: 'abstained', ofSubject: true });
  expect(standing(candidate(said(0.9, 0.08), { above: 'passing' }))).toMatchObject({ kind: 'abstained' });
});

test('disagreement is never worth more than agreement at the same mean, and nothing is worth more than the line allows', () => {
  const probability = fc.double({ min: 0, max: 1, noNaN: true });
  const worth = (one: PlanCandidate, off: number): number => {
    const found = standing(one, known(off));
    return found?.kind === 'judged' ? found.worth : Number.NaN;
  };
  fc.assert(
    fc.property(probability, probability, fc.constantFrom(0.05, 0.2, 0.4), (a, b, off) => {
      const mean = (a + b) / 2;
      const [apart, together] = [worth(candidate(said(a, b)), off), worth(candidate(said(mean, mean)), off)];
      expect(apart).toBeLessThanOrEqual(together + 1e-9);
      expect(together).toBeGreaterThanOrEqual(0);
      expect(together).toBeLessThanOrEqual(1);
    }),
  );
});

test('a candidate that no model has judged meets the ladder as it is without one', () => {
  const plain = { ...candidate(said(0.9, 0.9)), scores: [1, undefined], learned: undefined };
  expect(decide(plain, known(0.05))).toMatchObject({ kind: 'escalate', reason: 'valid passed it with 1' });
  expect(ladderOf(undefined, ladderWith(known(0.05)))).toEqual({
    rungs: tiers,
    calibrations: [noCalibration()],
  });
});
