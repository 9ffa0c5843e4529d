import type { Spent } from '../tier-contract.ts';
import { LOST } from './abstentions.ts';
import type { LadderDecision } from './policy.ts';

/** One line of a run's ledger. Written once, never changed; `gradus ledger RUN` shows them in order. */
export type LedgerEntry =
  | {
      kind: 'decision';
      stage: string;
      step: number;
      candidate: string;
      verifier: string;
      decision: LadderDecision['kind'];
      /** The dearest verdict that there was, which the decision rests on; null where no rung had judged. */
      basis: { rung: number; verifier: string; score: number } | null;
      value: number;
      uncertainty: number;
      reason: string;
      digest: string;
    }
  | {
      /** A verdict came. `spent` is null where the computation was somebody else's, or made before. */
      kind: 'verdict';
      stage: string;
      verifier: string;
      version: string;
      digest: string;
      result: 'scored' | 'measured' | 'abstained';
      /** Of an abstention. */
      type?: string;
      spent: Spent | null;
      /** After the step that asked for it had gone on. */
      late: boolean;
      /** After the run itself had come to its end: nothing of the run follows from it. */
      afterRun?: true;
      /** Given by people: the seconds of `spent` are how long the review was open, which is nobody's work. */
      by?: 'people';
    }
  | ({
      /** Attempts at a computation that came to nothing. What they cost nobody has measured. */
      kind: 'lost';
      stage: string;
      verifier: string;
      version: string;
      digest: string;
    } & LostAttempts)
  | {
      /** Decided to be asked, and not asked after all: others took more than they had declared. */
      kind: 'withdrawn';
      stage: string;
      verifier: string;
      version: string;
      digest: string;
    }
  | {
      /** Episodes of an earlier step, offered to the learner again with the verdict that superseded theirs. */
      kind: 'offered';
      stage: string;
      step: number;
      fromStep: number;
      episodes: number;
    };

/** What is known of attempts that were lost. */
export interface LostAttempts {
  attempts: number;
  /** From being asked to the last attempt's start, or its end where all were lost: what they took at most. */
  seconds: number;
  /** Of the last one. */
  reason: string;
}

/** What a verifier did and cost in a run. */
export interface LedgerTotals {
  escalated: number;
  deferred: number;
  accepted: number;
  rejected: number;
  /** Verdicts that were computed for this run, and what they cost. */
  computed: number;
  seconds: number;
  usd: number;
  /** Verdicts that cost this run nothing. */
  shared: number;
  abstained: number;
  /** Verdicts that came after their step had gone on, while the run went on, and those that came after the run's end. */
  late: number;
  afterRun: number;
  /** How long reviews were open that people have answered; in no seconds above, for nobody measures their work. */
  openSeconds: number;
  /** Attempts that came to nothing, and what they took at most; in no budget. */
  lost: number;
  lostSeconds: number;
}

export const noTotals = (): LedgerTotals => ({
  escalated: 0,
  deferred: 0,
  accepted: 0,
  rejected: 0,
  computed: 0,
  seconds: 0,
  usd: 0,
  shared: 0,
  abstained: 0,
  late: 0,
  afterRun: 0,
  openSeconds: 0,
  lost: 0,
  lostSeconds: 0,
});

const COUNTER = {
  escalate: 'escalated',
  defer: 'deferred',
  accept: 'accepted',
  reject: 'rejected',
} as const;

/** Adds entries to totals by verifier. */
export function addEntries(
  before: Readonly<Record<string, LedgerTotals>>,
  entries: readonly LedgerEntry[],
): Record<string, LedgerTotals> {
  const totals = { ...before };
  for (const entry of entries) {
    if (entry.kind === 'offered') continue;
    // What an older version has carried over lacks what was added since.
    const sum = (totals[entry.verifier] = { ...noTotals(), ...totals[entry.verifier] });
    if (entry.kind === 'decision') {
      sum[COUNTER[entry.decision]]++;
      continue;
    }
    if (entry.kind === 'withdrawn') {
      sum.deferred++;
      continue;
    }
    if (entry.kind === 'lost') {
      sum.lost += entry.attempts;
      sum.lostSeconds += entry.seconds;
      continue;
    }
    if (entry.spent === null) sum.shared++;
    else if (entry.type !== LOST) {
      sum.computed++;
      if (entry.by === 'people') sum.openSeconds += entry.spent.seconds;
      else sum.seconds += entry.spent.seconds;
      sum.usd += entry.spent.usd;
    }
    if (entry.result === 'abstained') sum.abstained++;
    if (entry.afterRun) sum.afterRun++;
    else if (entry.late) sum.late++;
  }
  return totals;
}

/** The sum of two totals. */
export function mergeTotals(
  one: Readonly<Record<string, LedgerTotals>>,
  other: Readonly<Record<string, LedgerTotals>>,
): Record<string, LedgerTotals> {
  const sum = { ...one };
  for (const [verifier, totals] of Object.entries(other)) {
    const merged = { ...noTotals(), ...sum[verifier] };
    for (const field of Object.keys(merged) as (keyof LedgerTotals)[]) merged[field] += totals[field] ?? 0;
    sum[verifier] = merged;
  }
  return sum;
}
