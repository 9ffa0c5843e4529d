import {
  condition,
  continueAsNew,
  defineQuery,
  getExternalWorkflowHandle,
  isCancellation,
  log,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import { emptyAccount, ofStep, reserve, settle } from '../core/ladder/budget.ts';
import type { Account, Budget } from '../core/ladder/budget.ts';
import { agreement, noCalibration } from '../core/ladder/calibration.ts';
import type { Calibration } from '../core/ladder/calibration.ts';
import { addEntries, mergeTotals } from '../core/ladder/ledger.ts';
import type { LedgerEntry, LedgerTotals } from '../core/ladder/ledger.ts';
import type {
  Arrived,
  CalibrateRequest,
  ClimbReply,
  ClimbRequest,
  StepGroups,
} from '../core/ladder/requests.ts';
import type { BlobRef } from '../core/refs.ts';
import type { VerificationSpec } from '../core/spec.ts';
import type { Spent } from '../core/tier-contract.ts';
import { ladderActivities, verdictActivities } from './activities.ts';
import { climbed, climbWanted, ladderClosed, ladderSwept, verdictArrived } from './messages.ts';

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
}
export const ladderStatus = defineQuery<LadderStatus>('ladder');

interface Asked {
  rung: number;
  stage: string;
  cost: Spent;
  /** The step that asked has gone on. */
  late: boolean;
}

interface LadderState {
  sequence: number;
  stage: string | null;
  budgets: Budget[];
  accounts: Account[];
  calibrations: Calibration[];
  totals: Record<string, LedgerTotals>;
  /** By `verifier/digest`. */
  asked: Record<string, Asked>;
  /** Asks that wait for a free place. */
  queued: { rung: number; asks: BlobRef; from: number; to: number }[];
  inFlight: number[];
  /** Steps whose late verdicts the learner may still hear of. */
  recent: StepGroups[];
  late: string[];
  /** Digests by rung that came since the last calibration. */
  arrived: string[][];
  requests: ClimbRequest[];
  closed: boolean;
}

export interface LadderInput {
  run: string;
  verification: VerificationSpec;
}

const key = (verifier: string, digest: string): string => `${verifier}/${digest}`;

/**
 * Owns the ladder of a run: budgets, calibration, ledger, and the verdicts that are still to come. Steps climb one
 * after the other. Ends when the run has and nothing is waited for; that may be days later.
 */
export async function ladder(input: LadderInput, from?: LadderState): Promise<LadderStatus> {
  const { run, verification } = input;
  const { rungs } = verification;
  const state = from ?? {
    sequence: 0,
    stage: null,
    budgets: rungs.map(({ budget }) => budget),
    accounts: rungs.map(() => emptyAccount()),
    calibrations: rungs.slice(1).map(() => noCalibration()),
    totals: {},
    asked: {},
    queued: [],
    inFlight: rungs.map(() => 0),
    recent: [],
    late: [],
    arrived: rungs.map(() => []),
    requests: [],
    closed: false,
  };
  /** What came and is not in the ledger yet. */
  const entries: LedgerEntry[] = [];
  /** The launcher must not be in the middle of something when the state is carried over. */
  let launching = false;
  const place = () => ({ writer: 'run', sequence: ++state.sequence });

  setHandler(climbWanted, (request) => void state.requests.push(request));
  setHandler(ladderClosed, () => void (state.closed = true));
  setHandler(ladderSwept, (digests) => void state.late.push(...digests));
  setHandler(verdictArrived, hear);
  setHandler(ladderStatus, status);

  void launch();
  for (;;) {
    await condition(
      () =>
        state.requests.length > 0 ||
        entries.length > 0 ||
        (state.closed && Object.keys(state.asked).length === 0) ||
        workflowInfo().continueAsNewSuggested,
    );
    const request = state.requests.shift();
    if (request) await serve(request);
    await writeDown();
    if (workflowInfo().continueAsNewSuggested) {
      await condition(() => !launching);
      while (entries.length > 0) await writeDown();
      await continueAsNew<typeof ladder>(input, state);
    }
    const idle = state.requests.length === 0 && entries.length === 0 && Object.keys(state.asked).length === 0;
    if (state.closed && idle) return status();
  }

  async function serve(request: ClimbRequest): Promise<void> {
    const { stage, step, groups } = request;
    if (stage !== state.stage) {
      state.stage = stage;
      state.budgets = rungs.map(({ verifier, budget }) => request.budgets[verifier] ?? budget);
      // What is still under way was promised by the stage before.
      state.accounts = rungs.map(() => emptyAccount());
    }
    const now: StepGroups = { stage, step, groups };
    const common = () => ({
      run,
      verification,
      calibrations: state.calibrations,
      steps: [...state.recent, now],
    });
    for (let rung = 1; rung < rungs.length; rung++) {
      const wanted: string[] = [];
      const budget = ofStep(state.budgets[rung]!, state.accounts[rung]!);
      for (let more = true; more;) {
        const plan = await ladderActivities.planClimb({
          ...common(),
          rung,
          budget,
          account: state.accounts[rung]!,
          underWay: underWay(rung),
          ledger: place(),
        });
        state.totals = mergeTotals(state.totals, plan.totals);
        plan.digests.forEach((digest, i) => {
          const cost = plan.costs[i]!;
          state.accounts[rung] = reserve(state.accounts[rung]!, cost);
          state.asked[key(plan.verifier, digest)] = { rung, stage, cost, late: false };
          wanted.push(key(plan.verifier, digest));
        });
        if (plan.asks) state.queued.push({ rung, asks: plan.asks, from: 0, to: plan.digests.length });
        more = plan.more;
      }
      const { wait, deadlineSeconds } = rungs[rung]!;
      const all = (): boolean => wanted.every((one) => state.asked[one] === undefined);
      if (wait && !all()) await condition(all, deadlineSeconds * 1000);
      await calibrate(rung, common());
    }
    for (const one of Object.values(state.asked)) one.late = true;
    const { totals, ...settled } = await ladderActivities.settleClimb({
      ...common(),
      reward: request.reward,
      late: state.late.splice(0),
      ledger: place(),
    });
    state.totals = mergeTotals(state.totals, totals);
    const most = verification.offerLateFor;
    state.recent = most === 0 ? [] : [...state.recent, now].slice(-most);
    await reply(request, { id: request.id, ...settled });
  }

  async function calibrate(rung: number, common: Omit<CalibrateRequest, 'rung' | 'digests'>): Promise<void> {
    const digests = state.arrived[rung]!.splice(0);
    if (digests.length === 0) return;
    state.calibrations[rung - 1] = await ladderActivities.calibrate({ ...common, rung, digests });
  }

  /** A verdict came: its promise is settled, and what it cost is booked. One that comes twice is heard once. */
  function hear({ verifier, version, digest, result, spent }: Arrived): void {
    const asked = state.asked[key(verifier, digest)];
    if (!asked) return;
    delete state.asked[key(verifier, digest)];
    const { rung, stage, cost, late } = asked;
    state.inFlight[rung]!--;
    if (stage === state.stage) state.accounts[rung] = settle(state.accounts[rung]!, cost, spent);
    state.arrived[rung]!.push(digest);
    if (late) state.late.push(digest);
    entries.push({ kind: 'verdict', stage, verifier, version, digest, result, spent, late });
  }

  /** Asks as places get free. Goes on beside the steps, because a rung need not be waited for. */
  async function launch(): Promise<void> {
    const free = (rung: number): number => rungs[rung]!.concurrency - state.inFlight[rung]!;
    for (;;) {
      await condition(() => state.queued.some(({ rung }) => free(rung) > 0));
      const at = state.queued.findIndex(({ rung }) => free(rung) > 0);
      const next = state.queued[at]!;
      const { asks, from, rung } = next;
      const to = Math.min(next.to, from + free(rung));
      next.from = to;
      if (to === next.to) state.queued.splice(at, 1);
      state.inFlight[rung]! += to - from;
      launching = true;
      await verdictActivities.requestVerdicts({ asks, from, to, requester: workflowInfo().workflowId });
      launching = false;
    }
  }

  async function writeDown(): Promise<void> {
    const page = entries.splice(0, LEDGER_PAGE);
    if (page.length === 0) return;
    state.totals = addEntries(state.totals, page);
    await ladderActivities.keepLedger({ run, ledger: place(), entries: page });
  }

  async function reply({ replyTo }: ClimbRequest, answer: ClimbReply): Promise<void> {
    try {
      await getExternalWorkflowHandle(replyTo).signal(climbed, answer);
    } catch (error) {
      if (isCancellation(error)) throw error;
      log.info('a step that wanted to climb has ended', { replyTo, reason: String(error) });
    }
  }

  function underWay(rung: number): string[] {
    const mine = Object.entries(state.asked).filter(([, asked]) => asked.rung === rung);
    return mine.map(([name]) => name.slice(name.lastIndexOf('/') + 1));
  }

  function status(): LadderStatus {
    return {
      stage: state.stage,
      budgets: Object.fromEntries(
        rungs.map(({ verifier }, i) => [
          verifier,
          { budget: state.budgets[i]!, account: state.accounts[i]! },
        ]),
      ),
      calibration: Object.fromEntries(
        state.calibrations.map((known, i) => [
          `${rungs[i]!.verifier} → ${rungs[i + 1]!.verifier}`,
          { ...known, passesHold: agreement(known, true) },
        ]),
      ),
      totals: state.totals,
      waiting: Object.keys(state.asked).length,
    };
  }
}

/** Entries that pass through the history at once. */
const LEDGER_PAGE = 100;
