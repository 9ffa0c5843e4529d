import type { Budget } from './ladder/budget.ts';

/** What a person changes of a run that goes on. What it does not name stays as it is. */
export interface RunChange {
  /** Of tiers, by verifier: limits that hold in the running stage and in all later ones. */
  budgets?: Record<string, BudgetChange>;
  /** By stage: the steps that it takes at most. */
  maxSteps?: Record<string, number>;
  /** Why; kept with the change. */
  reason?: string;
}

/** null takes a limit away. */
export type BudgetChange = { [Limit in keyof Budget]?: number | null };

/** A change as it lies in the run's record. */
export interface StoredChange extends RunChange {
  /** From 1, in the order in which they were made. */
  number: number;
  /** The newest one that held when it was made, 0 where none did: what a reset has undone is in no chain. */
  after: number;
  /** Of the update that brought it, which Temporal may bring again. */
  update: string;
  /** ISO 8601. */
  at: string;
  /** Where the run stood: what is in flight there goes on as it began. */
  stage: string;
  step: number | null;
}

/** All that holds of what was changed: of two changes of the same limit the later one. */
export interface Changed {
  /** Number of the newest change, 0 where there is none. */
  newest: number;
  budgets: Record<string, BudgetChange>;
  maxSteps: Record<string, number>;
}

export const nothingChanged = (): Changed => ({ newest: 0, budgets: {}, maxSteps: {} });

export function withChange(changed: Changed, { number, budgets = {}, maxSteps = {} }: StoredChange): Changed {
  const together = { ...changed.budgets };
  for (const [verifier, limits] of Object.entries(budgets)) {
    together[verifier] = { ...together[verifier], ...limits };
  }
  return { newest: number, budgets: together, maxSteps: { ...changed.maxSteps, ...maxSteps } };
}

/** A budget with other limits. */
export function changedBudget(budget: Budget, limits: BudgetChange): Budget {
  const together = Object.entries({ ...budget, ...limits });
  return Object.fromEntries(together.filter(([, limit]) => limit !== null && limit !== undefined));
}
