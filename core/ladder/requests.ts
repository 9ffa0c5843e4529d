import type { GroupResult } from '../requests/verification.ts';
import type { BlobRef } from '../refs.ts';
import type { RewardSpec } from '../schema/reward.ts';
import type { TierSpec, VerificationSpec } from '../schema/verification.ts';
import type { LateMove } from '../training/task-draw.ts';
import type { Spent, TierAnswer, TierRequest } from '../tier-contract.ts';
import type { Account, Budget } from './budget.ts';
import type { Calibration } from './calibration.ts';
import type { LedgerEntry, LedgerTotals, LostAttempts } from './ledger.ts';

// What the workflows of the ladder ask of activities and of each other.

/** The verifier that a reward names for the verdict of the highest tier of the ladder. */
export const LADDER = 'ladder';

/** One computation: what is asked, of whom, and how long that may take. */
export interface VerdictRequest {
  request: TierRequest;
  /** Environments know how to compute it; a person, what to look at. */
  environment: string;
  cost: Spent;
  limits: { timeoutSeconds: number; heartbeatSeconds: number; maxAttempts: number };
  served: { by: 'queue'; queue: string } | { by: 'people'; reviewers: number };
  /** The run that asks; absent where a person does. */
  run?: string;
  /** What lower tiers have said of the candidate, the lowest first, where the ladder asks. */
  cheaper?: CheaperVerdict[];
}

/** The verdict of a lower tier, for people who judge the same. */
export interface CheaperVerdict {
  verifier: string;
  /** null of the lowest tier where it abstained. */
  version: string | null;
  /** null where it abstained. */
  score: number | null;
  /** Of the score, where the verifier states one. */
  uncertainty?: number;
  /** Why it abstained, or what its verdict rests on; cut where it is long. */
  said?: string;
}

/** Groups of a step, as the fast tier has judged them. */
export interface StepGroups {
  stage: string;
  step: number;
  groups: BlobRef[];
  /** Of a step that has gone on: the same groups as they were last judged. */
  settled?: BlobRef[];
}

/** What every look at the ladder's candidates needs. The last of `steps` is the one that is escalated now. */
export interface LadderRequest {
  run: string;
  verification: VerificationSpec;
  calibrations: Calibration[];
  steps: StepGroups[];
  /** By tier: digests whose verdicts came since the last step settled, whoever asked for them. */
  came: string[][];
  ledger: LedgerPlace;
  /**
   * Names the decision among those of its step. A run that is done again, with another ladder, takes what was decided the first
   * time. Absent where an older version has asked: there `ledger` names it.
   */
  decision?: string;
}

/** Which object of the ledger is written: one writer, numbers without gaps. */
export interface LedgerPlace {
  writer: string;
  sequence: number;
}

/** As which the ladders of a run write, if they began before there could be several; others add when they have begun. */
export const LADDER_WRITER = 'run';

/** Of the ladder of a run that has begun at these epoch milliseconds. Of two the later one sorts behind the other. */
export const ladderWriter = (begun: number): string => `${LADDER_WRITER}.${begun}`;

/** Sweeps, evaluations and people write under other names. */
export const isLadderWriter = (writer: string): boolean =>
  writer === LADDER_WRITER || writer.startsWith(`${LADDER_WRITER}.`);

export interface PlanRequest extends LadderRequest {
  rung: number;
  budget: Budget;
  account: Account;
  /** Another plan of this step and tier has come before, and found more than it could ask. */
  again: boolean;
  /** Digests that have been asked and have not answered. */
  underWay: string[];
}

/** A computation that somebody wants, and what speaks for it. */
export interface WantedVerdict {
  ask: VerdictRequest;
  value: number;
  /** The verdict that the value was predicted from; null where no rung could judge. */
  basis: { rung: number; score: number; learned?: string } | null;
}

export interface PlanResult {
  /** With the pairs that came. */
  calibrations: Calibration[];
  /** An array of `WantedVerdict`, best value first; null where there is nothing to ask. */
  asks: BlobRef | null;
  digests: string[];
  verifier: string;
  /** Declared, of each. */
  costs: Spent[];
  /** More would be asked: plan again when these have been registered. */
  more: boolean;
  totals: Record<string, LedgerTotals>;
}

export interface SettleRequest extends LadderRequest {
  reward: RewardSpec;
}

export interface SettleResult {
  calibrations: Calibration[];
  groups: GroupResult[];
  /** What was judged anew, by the key of the group as the fast tier has judged it. */
  settled: Record<string, BlobRef>;
  /** Groups of earlier steps whose verdicts changed, for the learner to see again. */
  offered: BlobRef[];
  /** By how much late verdicts change what earlier steps had counted. */
  moves: LateMove[];
  totals: Record<string, LedgerTotals>;
}

export interface RequestVerdicts {
  asks: BlobRef;
  from: number;
  to: number;
  /** The workflow that is told. */
  requester: string;
}

/** Told by the workflow of a verdict to everyone who waits for it. */
export interface Arrived {
  verifier: string;
  version: string;
  digest: string;
  result: TierAnswer['kind'];
  /** Of an abstention. */
  type?: string;
  /** null for those who did not cause the computation. */
  spent: Spent | null;
  /** Attempts that came to nothing, for the one who is charged. */
  lost?: LostAttempts;
  /** People have given it; absent of what was computed. */
  by?: 'people';
}

/** An answer as it counts from now on. */
export interface StoredVerdict {
  answer: TierAnswer;
  lost: LostAttempts | null;
}

/** Takes asks back for want of budget. */
export interface Withdraw {
  run: string;
  stage: string;
  asks: BlobRef;
  from: number;
  to: number;
  ledger: LedgerPlace;
}

/** What a sweep found. */
export interface Swept {
  verifier: string;
  digest: string;
}

export interface WriteLedger {
  run: string;
  /** The run's ladder knows these verdicts from now on. */
  heard: boolean;
  ledger: LedgerPlace;
  entries: LedgerEntry[];
}

/** Of a stage to the ladder of its run. */
export interface EscalationRequest extends StepGroups {
  id: string;
  replyTo: string;
  budgets: Record<string, Budget>;
  reward: RewardSpec;
}

export interface EscalationReply extends Omit<SettleResult, 'totals' | 'calibrations' | 'settled'> {
  id: string;
}

/** In place of a reply, of a ladder that has failed. */
export interface EscalationFailure {
  id: string;
  /** As Temporal knows it. */
  type: string;
  message: string;
}

/** Of an evaluation: every episode that the lowest tier passed is judged by one other tier. */
export interface AssessRequest extends StepGroups {
  run: string;
  /** The lowest tier and the one that judges. */
  rungs: [TierSpec, TierSpec];
  reward: RewardSpec;
  /** Of the ledger. */
  writer: string;
}

export interface PlannedAssessment {
  asks: BlobRef | null;
  count: number;
}

/** A sweep as it was read: what a person left out is there. */
export interface Sweep {
  run: string;
  /** Only what was deferred for want of this one's budget. */
  verifier?: string;
  budget: Budget;
  /** Computations in flight at once. */
  concurrency: number;
  /** How long it waits for verdicts, seconds. */
  deadlineSeconds: number;
}

/** A re-verification as it was read. */
export interface Reverification {
  run: string;
  verifier: string;
  version: string;
  /** Absent: all stages and evaluations. */
  stage?: string;
  /** Computations in flight at once. */
  concurrency: number;
}

export interface PlanSweep {
  run: string;
  verifier?: string;
  budget: Budget;
  /** Of the ledger. */
  writer: string;
}

export interface PlannedSweep {
  asks: BlobRef | null;
  /** Ids of the workflows that compute them: two verifiers may judge one subject. */
  names: string[];
  /** Declared, of each. */
  costs: Spent[];
}

export interface ReverifyRequest {
  run: string;
  verifier: string;
  version: string;
  /** Absent: all stages and evaluations. */
  stage?: string;
  writer: string;
}

export interface ReverifyResult {
  asks: BlobRef | null;
  count: number;
}
