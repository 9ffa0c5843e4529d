import type { Spent } from '../tier-contract.ts';

/** What a tier may spend in a stage, or in a sweep. Absent: without limit. */
export interface Budget {
  /** Verdicts or computations, as the spec's `counts` says. */
  count?: number | undefined;
  seconds?: number | undefined;
  usd?: number | undefined;
  /** So many of one step at most, so that the first steps do not take what better candidates would need. */
  perStep?: number | undefined;
}

/** What was spent of a budget, and what is promised to computations that are under way. */
export interface Account {
  count: number;
  seconds: number;
  usd: number;
  reserved: { count: number; seconds: number; usd: number };
}

export const emptyAccount = (): Account => ({
  count: 0,
  seconds: 0,
  usd: 0,
  reserved: { count: 0, seconds: 0, usd: 0 },
});

/** Room for rounding of sums; a budget of 0.3 holds three computations of 0.1. */
const SLACK = 1e-9;

export const fits = (limit: number | undefined, taken: number): boolean =>
  limit === undefined || taken <= limit * (1 + SLACK);

/** Whether one more computation of this expected cost fits beside what is spent and promised. */
export function hasRoom(budget: Budget, account: Account, cost: Spent): boolean {
  return (
    fits(budget.count, account.count + account.reserved.count + 1) &&
    fits(budget.seconds, account.seconds + account.reserved.seconds + cost.seconds) &&
    fits(budget.usd, account.usd + account.reserved.usd + cost.usd)
  );
}

/** What a step that begins with this account may spend. */
export function ofStep({ perStep, ...budget }: Budget, { count, reserved }: Account): Budget {
  if (perStep === undefined) return budget;
  return { ...budget, count: Math.min(budget.count ?? Infinity, count + reserved.count + perStep) };
}

/**
 * Whether what is spent and promised has outgrown the budget, because computations took more than they had declared.
 * What has not begun is then taken back, so that spending passes a budget by no more than what the computations in
 * flight take above what was reserved for them.
 */
export const overdrawn = (budget: Budget, { count, seconds, usd, reserved }: Account): boolean =>
  count + reserved.count > (budget.count ?? Infinity) ||
  seconds + reserved.seconds > (budget.seconds ?? Infinity) * (1 + SLACK) ||
  usd + reserved.usd > (budget.usd ?? Infinity) * (1 + SLACK);

export const reserve = (account: Account, cost: Spent): Account => ({
  ...account,
  reserved: {
    count: account.reserved.count + 1,
    seconds: account.reserved.seconds + cost.seconds,
    usd: account.reserved.usd + cost.usd,
  },
});

/**
 * Frees a promise and books what was really spent; null where nothing was computed for this account, which then counts
 * only where `counted` says so.
 */
export function settle(
  account: Account,
  promised: Spent,
  spent: Spent | null,
  counted = spent !== null,
): Account {
  const { reserved } = account;
  return {
    count: account.count + (counted ? 1 : 0),
    seconds: account.seconds + (spent?.seconds ?? 0),
    usd: account.usd + (spent?.usd ?? 0),
    reserved: {
      count: reserved.count - 1,
      seconds: Math.max(0, reserved.seconds - promised.seconds),
      usd: Math.max(0, reserved.usd - promised.usd),
    },
  };
}
