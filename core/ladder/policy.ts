import type { Tier } from '../episode/outcome.ts';
import type { Spent } from '../tier-contract.ts';
import { hasRoom, reserve } from './budget.ts';
import type { Account, Budget } from './budget.ts';
import { predict } from './calibration.ts';
import type { Calibration } from './calibration.ts';
import { ladderOf } from './learned-tier.ts';
import type { LearnedTier, LearnedVerdict, WholeLadder } from './learned-tier.ts';

/** A tier of the ladder, as the spec has it; the cheapest first. */
export interface LadderTier {
  verifier: string;
  tier: Tier;
  /** A score from which on a candidate passes this tier. */
  passAtLeast: number;
  /** What did not pass goes on all the same when the next tier is expected to say so much, and so little is sure of it. */
  escalate: { valueAtLeast: number; uncertaintyAtLeast: number };
  /** What a candidate is worth that the tier below passed and that this one cannot judge. */
  abstains: AbstentionRule;
  /** Of a reward model that speaks for the lowest tier: what it says of the candidate, and when that does not suffice. */
  learned?: LearnedVerdict & Pick<LearnedTier, 'uncertaintyAtLeast'>;
}

/**
 * The first is the default. `zero`: nothing, unless the abstention says nothing of the subject. `expected`: what the
 * highest tier is expected to say by the calibration. `abstained`: the episode has no reward and teaches nothing, so
 * that a policy which can earn less than its group's mean learns to hide there.
 */
export const ABSTENTION_RULES = ['zero', 'expected', 'abstained'] as const;
export type AbstentionRule = (typeof ABSTENTION_RULES)[number];

/**
 * What each tier said of a candidate: a score; that it cannot judge the subject (`abstained`) or could not this time
 * (`passing`); that there is nothing to ask it; undefined where it has not been asked.
 */
export type TierScore = number | 'abstained' | 'passing' | 'nothing to ask' | undefined;
export type TierScores = readonly TierScore[];

export interface LadderDecision {
  kind: 'accept' | 'reject' | 'escalate' | 'defer';
  /** `escalate`, `defer`: the tier that should judge it. Else the tier whose verdict stands, −1 where none judged. */
  tier: number;
  /** What the tier that should judge it is expected to say, or what the last one said. */
  value: number;
  uncertainty: number;
  reason: string;
}

/** The highest verdict so far, −1 where no tier could judge. */
export function basisOf(scores: TierScores): number {
  for (let tier = scores.length - 1; tier >= 0; tier--) if (typeof scores[tier] === 'number') return tier;
  return -1;
}

/** The first tier above the verdict of the highest tier that was asked and gave none, −1 where there is none. */
export function silentAbove(scores: TierScores): number {
  const basis = basisOf(scores);
  return scores.findIndex((score, tier) => tier > basis && (score === 'abstained' || score === 'passing'));
}

/**
 * What becomes of a candidate. It is escalated when the last tier passed it, when it is valuable and uncertain, or when no
 * tier could judge it yet; a tier that abstained is passed over. What a reward model has judged is escalated when that is
 * uncertain, or audited, whether it passed or not. `calibrations[i]` is between tiers i and i + 1.
 */
export function decideTier(
  scores: TierScores,
  tiers: readonly LadderTier[],
  calibrations: readonly Calibration[],
  roomAt: (tier: number) => boolean,
): LadderDecision {
  const basis = basisOf(scores);
  const next = tiers.findIndex((_, i) => i > basis && scores[i] === undefined);
  const score = basis < 0 ? 0 : (scores[basis] as number);
  const passed = basis >= 0 && passes(tiers[basis]!, score);
  const at = (
    kind: LadderDecision['kind'],
    tier: number,
    value: number,
    uncertainty: number,
    why: string,
  ) => ({
    kind,
    tier,
    value,
    uncertainty,
    reason: why,
  });
  if (next < 0) {
    if (basis < 0) return at('reject', -1, 0, 0, 'no tier could judge it');
    const { verifier, passAtLeast, learned } = tiers[basis]!;
    const silent = silentAbove(scores);
    if (passed && silent >= 0) {
      const how = `${verifier} said ${show(score)}; ${tiers[silent]!.verifier} could not judge it`;
      return at('reject', basis, score, 0, how);
    }
    const judged = learned
      ? passed
        ? 'a pass'
        : 'no pass'
      : `${passed ? 'at least' : 'below'} ${passAtLeast}`;
    const how = `${verifier} said ${show(score)}, ${judged}; no tier is above`;
    return at(passed ? 'accept' : 'reject', basis, score, 0, how);
  }
  const onwards = (value: number, uncertainty: number, why: string): LadderDecision =>
    roomAt(next)
      ? at('escalate', next, value, uncertainty, why)
      : at('defer', next, value, uncertainty, `${why}; the budget of ${tiers[next]!.verifier} is spent`);
  if (basis < 0) return onwards(0.5, 0.5, 'no lower tier could judge it');

  // Between tiers that are not neighbours, one of which abstained, the line of the upper pair has no say.
  const { mean, deviation } = predict(calibrations[basis]!, score);
  const { verifier, passAtLeast, escalate, learned } = tiers[basis]!;
  if (learned) {
    // What its models disagree by comes on top of how far they are off when they agree.
    const uncertainty = Math.hypot(deviation, learned.uncertainty);
    const said = `${verifier} said ${show(score)} ± ${show(learned.uncertainty)}`;
    if (learned.audited) return onwards(mean, uncertainty, `${said}; it is audited`);
    if (uncertainty >= learned.uncertaintyAtLeast)
      return onwards(mean, uncertainty, `${said}; uncertain (± ${show(uncertainty)})`);
    return at(passed ? 'accept' : 'reject', basis, score, uncertainty, `${said}, which is sure enough`);
  }
  if (passed) return onwards(mean, deviation, `${verifier} passed it with ${show(score)}`);
  const { valueAtLeast, uncertaintyAtLeast } = escalate;
  if (mean >= valueAtLeast && deviation >= uncertaintyAtLeast) {
    return onwards(
      mean,
      deviation,
      `valuable (${show(mean)}) and uncertain (± ${show(deviation)}), though ${verifier} said ${show(score)}`,
    );
  }
  return at('reject', basis, score, deviation, `${verifier} said ${show(score)}, below ${passAtLeast}`);
}

/** Whether a score of this tier is a pass; a reward model passes what is likelier than not after its deviations. */
export const passes = ({ passAtLeast, learned }: LadderTier, score: number): boolean =>
  learned?.passed ?? score >= passAtLeast;

const show = (value: number): string => String(Number(value.toFixed(3)));

/** A candidate as planning sees it: `digests[i]` names what tier i would compute, null where there is nothing to ask. */
export interface PlanCandidate {
  id: string;
  scores: TierScores;
  digests: readonly (string | null)[];
  /** What a reward model says of it, where one speaks for the lowest tier. */
  learned?: LearnedVerdict | undefined;
}

/** `decideTier` on the ladder as the candidate meets it. */
export function decideCandidate(
  { scores, learned }: Pick<PlanCandidate, 'scores' | 'learned'>,
  ladder: WholeLadder,
  roomAt: (tier: number) => boolean,
): LadderDecision {
  const { rungs, calibrations } = ladderOf(learned, ladder);
  return decideTier(scores, rungs, calibrations, roomAt);
}

export interface TierPlan {
  /** By candidate, in the order given. Those that concern another tier are null. */
  decisions: (LadderDecision | null)[];
  /** What is to be computed: audits, then the best value first. */
  asks: { digest: string; value: number }[];
}

/**
 * What a computation is worth: the values of all candidates that it serves together. In an order of their own, so that
 * the sum does not depend on the order in which they come.
 */
const worthOf = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b).reduce((sum, value) => sum + value, 0);

/**
 * Decides for all candidates that stand below a tier, audits first and then the best worth, within what is left of its
 * budget. One computation serves every candidate with the same digest. What order the candidates come in makes no difference.
 */
export function planTier(
  tier: number,
  candidates: readonly PlanCandidate[],
  ladder: WholeLadder,
  money: { budget: Budget; account: Account; cost: Spent; most: number; underWay: ReadonlySet<string> },
): TierPlan {
  const wishes = candidates.map((candidate) => {
    const wish = decideCandidate(candidate, ladder, () => true);
    return wish.kind === 'escalate' && wish.tier === tier && candidate.digests[tier] != null ? wish : null;
  });
  const served = new Map<string, number[]>();
  wishes.forEach((wish, i) => {
    if (wish === null) return;
    const digest = candidates[i]!.digests[tier]!;
    served.set(digest, [...(served.get(digest) ?? []), wish.value]);
  });
  const values = [...served].map(([digest, all]) => [digest, worthOf(all)] as const);
  const audited = new Set(
    candidates.flatMap(({ learned, digests }) => (learned?.audited ? (digests[tier] ?? []) : [])),
  );
  const ordered = values.toSorted(([a, x], [b, y]) => {
    const [first, second] = [audited.has(a), audited.has(b)];
    if (first !== second) return first ? -1 : 1;
    // Of audits no value decides: they tell how good a model is, and must be of what it rejects, too.
    return (first ? 0 : y - x) || (a < b ? -1 : 1);
  });
  const asks: TierPlan['asks'] = [];
  let { account } = money;
  for (const [digest, value] of ordered) {
    if (money.underWay.has(digest)) continue;
    if (asks.length >= money.most || !hasRoom(money.budget, account, money.cost)) break;
    account = reserve(account, money.cost);
    asks.push({ digest, value });
  }
  const answered = new Set([...money.underWay, ...asks.map(({ digest }) => digest)]);
  const decisions = wishes.map((wish, i) => {
    if (wish === null) return null;
    const candidate = candidates[i]!;
    return decideCandidate(candidate, ladder, () => answered.has(candidate.digests[tier]!));
  });
  return { decisions, asks };
}
