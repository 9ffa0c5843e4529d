import { emptyAccount } from '../../core/ladder/budget.ts';
import type { Account, Budget } from '../../core/ladder/budget.ts';
import { agreement, noCalibration } from '../../core/ladder/calibration.ts';
import type { Calibration } from '../../core/ladder/calibration.ts';
import type { LedgerTotals } from '../../core/ladder/ledger.ts';
import type { EscalationRequest, StepGroups } from '../../core/ladder/requests.ts';
import type { BlobRef } from '../../core/refs.ts';
import { learnedName } from '../../core/ladder/learned-tier.ts';
import type { TierSpec, VerificationSpec } from '../../core/schema/verification.ts';
import type { Spent } from '../../core/tier-contract.ts';

/** A computation that was asked for and has not answered. */
interface Asked {
  rung: number;
  stage: string;
  cost: Spent;
  /** The step that asked has gone on. */
  late: boolean;
  /** Where it stands: the plan that wants it, and the place in its asks. */
  plan: number;
  index: number;
}

/** Asks of a plan that wait for a free place. */
interface Queued {
  plan: number;
  rung: number;
  stage: string;
  asks: BlobRef;
  from: number;
  to: number;
}

/** A step that is escalated, and waits for the verdicts of a tier. */
export interface WaitingStep {
  request: EscalationRequest;
  rung: number;
  /** Epoch milliseconds; then it goes on without. */
  deadline: number;
}

/** Everything that a ladder carries over continue-as-new. */
export interface LadderState {
  /** Objects written so far; numbers their keys. */
  sequence: number;
  /** Under which name it writes. Absent where an older version has carried over. */
  writer?: string;
  stage: string | null;
  budgets: Budget[];
  accounts: Account[];
  calibrations: Calibration[];
  totals: Record<string, LedgerTotals>;
  /** By `verifier/digest`. */
  asked: Record<string, Asked>;
  queued: Queued[];
  inFlight: number[];
  /** Steps whose late verdicts the learner may still hear of. */
  recent: StepGroups[];
  /** The last step of each stage that was settled; absent where an older version has carried over. */
  settled?: Record<string, number>;
  /** Digests by tier that came since a step last settled. */
  came: string[][];
  requests: EscalationRequest[];
  /** Absent where none does, and where an older version has carried over. */
  waiting?: WaitingStep | undefined;
  closed: boolean;
  /** How often it has continued as new. */
  continued: number;
}

export const initialLadderState = ({ rungs: tiers, learned }: VerificationSpec): LadderState => ({
  sequence: 0,
  stage: null,
  budgets: tiers.map(({ budget }) => budget),
  accounts: tiers.map(() => emptyAccount()),
  // Between neighbours, and from the reward model.
  calibrations: tiers.slice(learned ? 0 : 1).map(() => noCalibration()),
  totals: {},
  asked: {},
  queued: [],
  inFlight: tiers.map(() => 0),
  recent: [],
  came: tiers.map(() => []),
  requests: [],
  closed: false,
  continued: 0,
});

/** What `temporal workflow query --type ladder` answers. */
export interface LadderStatus {
  stage: string | null;
  /** By verifier: the budget of the stage, and what is spent and promised of it. */
  budgets: Record<string, { budget: Budget; account: Account }>;
  /** Between neighbours, `cheap → dear`. */
  calibration: Record<string, Calibration & { passesHold: ReturnType<typeof agreement> }>;
  totals: Record<string, LedgerTotals>;
  /** Computations that were asked for and have not answered. */
  waiting: number;
  continued: number;
}

export function ladderStatusOf(
  { rungs: tiers, learned }: VerificationSpec,
  state: LadderState,
): LadderStatus {
  const above = (i: number): TierSpec => tiers[i + 1] ?? tiers[1]!;
  const below = (i: number): string =>
    i === tiers.length - 1 ? learnedName(learned!.stage) : tiers[i]!.verifier;
  return {
    stage: state.stage,
    budgets: Object.fromEntries(
      tiers.map(({ verifier }, i) => [verifier, { budget: state.budgets[i]!, account: state.accounts[i]! }]),
    ),
    calibration: Object.fromEntries(
      state.calibrations.map((known, i) => [
        `${below(i)} → ${above(i).verifier}`,
        { ...known, passesHold: agreement(known, true) },
      ]),
    ),
    totals: state.totals,
    waiting: Object.keys(state.asked).length,
    continued: state.continued,
  };
}
