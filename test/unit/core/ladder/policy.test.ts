import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { emptyAccount, hasRoom, ofStep, reserve, settle } from '../../../../core/ladder/budget.ts';
import { addPairs, noCalibration } from '../../../../core/ladder/calibration.ts';
import { basisOf, decideTier, planTier } from '../../../../core/ladder/policy.ts';
import type { PlanCandidate, LadderTier, TierScore, TierScores } from '../../../../core/ladder/policy.ts';

const tierOf = (tier: LadderTier['tier'], passAtLeast = 0.5): LadderTier => ({
  verifier: tier,
  tier,
  passAtLeast,
  escalate: { valueAtLeast: 0.4, uncertaintyAtLeast: 0.2 },
  abstains: 'zero',
});
const tiers = [tierOf('fast'), tierOf('simulation'), tierOf('high-fidelity')];

const score = fc.double({ min: 0, max: 1, noNaN: true });
const pair = fc
  .tuple(score, score)
  .map(([cheap, dear]) => ({ cheap, dear, cheapPassed: cheap >= 0.5, dearPassed: dear >= 0.5 }));
const calibrations = fc
  .tuple(fc.array(pair), fc.array(pair))
  .map((both) => both.map((pairs) => addPairs(noCalibration(), pairs)));
/** Tiers are asked from below: what was not asked lies above what was. */
const scores: fc.Arbitrary<TierScores> = fc
  .array(fc.oneof(score, fc.constantFrom<TierScore>('abstained', 'passing', 'nothing to ask')), {
    minLength: 1,
    maxLength: 3,
  })
  .map((asked) => [0, 1, 2].map((i) => asked[i]));
const candidates = fc.array(
  fc
    .record({ id: fc.uuid(), scores, digest: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f') })
    .map(({ id, scores, digest }): PlanCandidate => ({
      id,
      scores,
      digests: [null, `${digest}1`, `${digest}2`],
    })),
);
const budget = fc.record({
  count: fc.option(fc.integer({ min: 0, max: 8 }), { nil: undefined }),
  seconds: fc.option(fc.double({ min: 0, max: 20, noNaN: true }), { nil: undefined }),
  usd: fc.option(fc.double({ min: 0, max: 5, noNaN: true }), { nil: undefined }),
});
const cost = fc.record({
  seconds: fc.double({ min: 0, max: 5, noNaN: true }),
  usd: fc.double({ min: 0, max: 1, noNaN: true }),
});
const most = fc.integer({ min: 0, max: 10 });

test('no candidate is escalated past a tier that rejects it, unless it is valuable and uncertain', () => {
  fc.assert(
    fc.property(scores, calibrations, (scores, known) => {
      const decision = decideTier(scores, tiers, known, () => true);
      if (decision.kind !== 'escalate') return;
      const basis = basisOf(scores);
      if (basis < 0 || (scores[basis] as number) >= tiers[basis]!.passAtLeast) return;
      expect(decision.value).toBeGreaterThanOrEqual(0.4);
      expect(decision.uncertainty).toBeGreaterThanOrEqual(0.2);
    }),
  );
});

test('what passes goes on, what has no tier above is accepted or rejected by the verdict of the highest tier', () => {
  const none = [noCalibration(), noCalibration()];
  const yes = (): boolean => true;
  expect(decideTier([0.7, undefined, undefined], tiers, none, yes)).toMatchObject({
    kind: 'escalate',
    tier: 1,
  });
  expect(decideTier([0.7, 0.8, undefined], tiers, none, () => false)).toMatchObject({
    kind: 'defer',
    tier: 2,
  });
  expect(decideTier([0.7, 0.8, 0.6], tiers, none, yes)).toMatchObject({ kind: 'accept', tier: 2 });
  expect(decideTier([0.7, 0.8, 0.4], tiers, none, yes)).toMatchObject({ kind: 'reject', tier: 2 });
  expect(decideTier([0.01, undefined, undefined], tiers, none, yes)).toMatchObject({
    kind: 'reject',
    tier: 0,
  });
});

test('a tier that abstains is passed over; the verdict below it still counts', () => {
  const none = [noCalibration(), noCalibration()];
  expect(decideTier([0.7, 'abstained', undefined], tiers, none, () => true)).toMatchObject({
    kind: 'escalate',
    tier: 2,
  });
  expect(decideTier(['abstained', undefined, undefined], tiers, none, () => true)).toMatchObject({
    kind: 'escalate',
    tier: 1,
    reason: 'no lower tier could judge it',
  });
  expect(decideTier(['abstained', 'passing', 'abstained'], tiers, none, () => true)).toMatchObject({
    kind: 'reject',
    tier: -1,
  });
});

test('a plan never goes above a budget, in number, seconds or US$', () => {
  fc.assert(
    fc.property(candidates, calibrations, budget, cost, most, (all, known, limit, price, limitOfPlan) => {
      const money = {
        budget: limit,
        account: emptyAccount(),
        cost: price,
        most: limitOfPlan,
        underWay: new Set<string>(),
      };
      const { asks } = planTier(1, all, { rungs: tiers, calibrations: known }, money);
      expect(asks.length).toBeLessThanOrEqual(Math.min(limitOfPlan, limit.count ?? Infinity));
      expect(asks.length * price.seconds).toBeLessThanOrEqual((limit.seconds ?? Infinity) * (1 + 1e-6));
      expect(asks.length * price.usd).toBeLessThanOrEqual((limit.usd ?? Infinity) * (1 + 1e-6));
    }),
  );
});

test('what order candidates come in does not change what is computed, nor the decision on any of them', () => {
  const shuffled = candidates.chain((all) =>
    fc.tuple(fc.constant(all), fc.shuffledSubarray(all, { minLength: all.length })),
  );
  fc.assert(
    fc.property(shuffled, calibrations, budget, cost, ([all, other], known, limit, price) => {
      const money = {
        budget: limit,
        account: emptyAccount(),
        cost: price,
        most: 100,
        underWay: new Set<string>(),
      };
      const plan = (some: readonly PlanCandidate[]) =>
        planTier(1, some, { rungs: tiers, calibrations: known }, money);
      const [one, two] = [plan(all), plan(other)];
      expect(two.asks).toEqual(one.asks);
      all.forEach((candidate, i) => {
        expect(two.decisions[other.indexOf(candidate)]).toEqual(one.decisions[i]);
      });
      expect(plan(all)).toEqual(one);
    }),
  );
});

test('the best value is served first, and everything that wished to be escalated is either served or deferred', () => {
  fc.assert(
    fc.property(candidates, calibrations, budget, (all, known, limit) => {
      const money = {
        budget: limit,
        account: emptyAccount(),
        cost: { seconds: 1, usd: 0.1 },
        most: 100,
        underWay: new Set(['a1']),
      };
      const { asks, decisions } = planTier(1, all, { rungs: tiers, calibrations: known }, money);
      const asked = new Set(asks.map(({ digest }) => digest));
      const worst = Math.min(...asks.map(({ value }) => value));
      expect(asked.size).toBe(asks.length);
      expect(asked.has('a1')).toBe(false);
      decisions.forEach((decision, i) => {
        if (decision === null) return;
        const digest = all[i]!.digests[1]!;
        expect(decision.kind).toBe(asked.has(digest) || digest === 'a1' ? 'escalate' : 'defer');
        if (decision.kind === 'defer') expect(decision.value).toBeLessThanOrEqual(worst);
      });
    }),
  );
});

test('an account holds what is promised until it is settled, and what was really spent after that', () => {
  const promised = { seconds: 2, usd: 0.5 };
  const held = reserve(reserve(emptyAccount(), promised), promised);
  expect(hasRoom({ count: 2 }, held, promised)).toBe(false);
  expect(hasRoom({ seconds: 6 }, held, promised)).toBe(true);
  const after = settle(settle(held, promised, { seconds: 3, usd: 0.4 }), promised, null);
  expect(after).toEqual({ count: 1, seconds: 3, usd: 0.4, reserved: { count: 0, seconds: 0, usd: 0 } });
  expect(hasRoom({ count: 2 }, after, promised)).toBe(true);
  // A verdict that was known costs nothing, and counts where verdicts do.
  expect(settle(after, promised, null, true)).toMatchObject({ count: 2, seconds: 3, usd: 0.4 });
});

test('a step takes no more than its part, and no more than is left', () => {
  const spent = { ...emptyAccount(), count: 7, reserved: { count: 1, seconds: 0, usd: 0 } };
  expect(ofStep({ count: 100, perStep: 3 }, spent)).toEqual({ count: 11 });
  expect(ofStep({ count: 9, perStep: 3 }, spent)).toEqual({ count: 9 });
  expect(ofStep({ seconds: 5, perStep: 3 }, spent)).toEqual({ count: 11, seconds: 5 });
  expect(ofStep({ count: 9 }, spent)).toEqual({ count: 9 });
});

test('of two computations the one goes first that serves more, and of two that serve as many the more valuable one', () => {
  const standing = (id: string, score: number, digest: string) => ({
    id,
    scores: [score, undefined],
    digests: [null, digest],
  });
  const first = (...all: ReturnType<typeof standing>[]) =>
    planTier(
      1,
      all,
      { rungs: tiers.slice(0, 2), calibrations: [noCalibration()] },
      {
        budget: { count: 1 },
        account: emptyAccount(),
        cost: { seconds: 1, usd: 0 },
        most: 9,
        underWay: new Set(),
      },
    ).asks[0]!.digest;
  expect(first(standing('a', 0.9, 'one'), standing('b', 0.7, 'two'), standing('c', 0.7, 'two'))).toBe('two');
  expect(first(standing('a', 0.9, 'one'), standing('b', 0.7, 'two'))).toBe('one');
});
