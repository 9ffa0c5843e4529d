import {
  CancellationScope,
  condition,
  continueAsNew,
  defineQuery,
  getExternalWorkflowHandle,
  isCancellation,
  log,
  setHandler,
  sleep,
  TemporalFailure,
  workflowInfo,
} from '@temporalio/workflow';
import { emptyAccount, ofStep, overdrawn, reserve, settle } from '../../core/ladder/budget.ts';
import { entriesOf } from '../../core/ladder/arrivals.ts';
import { addEntries, mergeTotals } from '../../core/ladder/ledger.ts';
import type { LedgerEntry } from '../../core/ladder/ledger.ts';
import type {
  Arrived,
  EscalationFailure,
  EscalationReply,
  EscalationRequest,
  StepGroups,
  Swept,
} from '../../core/ladder/requests.ts';
import { LADDER_WRITER, ladderWriter } from '../../core/ladder/requests.ts';
import { ids } from '../../core/names.ts';
import type { VerificationSpec } from '../../core/schema/verification.ts';
import { ladderActivities, runWatchActivities, verdictActivities } from '../activities.ts';
import { stopAsking } from './ask.ts';
import { parentOf } from '../control/refuse.ts';
import { initialLadderState, ladderStatusOf } from './ladder-state.ts';
import type { LadderState, LadderStatus, WaitingStep } from './ladder-state.ts';
import { listen } from '../control/listen.ts';
import { arrivedShape, escalationRequest, sweptList } from '../control/message-shapes.ts';
import {
  escalationAwaited,
  escalated,
  escalationFailed,
  escalationWanted,
  ladderClosed,
  ladderReopened,
  ladderSwept,
  runGone,
  verdictArrived,
} from '../control/messages.ts';
import { rootMessage } from '../ports.ts';
import { damageOf } from '../control/retry-after-repair.ts';

const ladderStatus = defineQuery<LadderStatus>('ladder');

export interface LadderInput {
  run: string;
  verification: VerificationSpec;
  /** The first execution of the run, which one that is reset has in common with those before it. */
  firstRunId: string;
}

const key = (verifier: string, digest: string): string => `${verifier}/${digest}`;

/** How often it looks whether its run is still there. */
const WATCH_INTERVAL = '30 seconds';

/** Entries that pass through the history at once. */
const LEDGER_PAGE = 100;

/**
 * Owns the ladder of a run: budgets, calibration, ledger, and the verdicts that are still to come. Steps are escalated one
 * after the other. Ends when the run has come to its end and nothing is waited for, which may be days later, and at once
 * when the run failed, was cancelled or terminated.
 */
export async function ladder(input: LadderInput, from?: LadderState): Promise<LadderStatus> {
  const parent = parentOf(from);
  const { run, verification, firstRunId } = input;
  const { rungs: tiers } = verification;
  const state: LadderState = from ?? {
    ...initialLadderState(verification),
    writer: ladderWriter(workflowInfo().startTime.getTime()),
  };
  /** What came and is not in the ledger yet. */
  const entries: LedgerEntry[] = [];
  /** The launcher must not be in the middle of something when the state is carried over. */
  let launching = false;
  /** The run has ended before its end: nothing more is asked or waited for. */
  let gone = false;
  /** The run was reset after that. */
  let reopened = false;
  /** Steps of the run that was reset, for the ladder that is begun anew. */
  const later: EscalationRequest[] = [];
  /** The step that is escalated. */
  let serving: EscalationRequest | null = null;
  /** The state is about to be carried over: what is not launched yet is launched from there. */
  let leaving = false;
  const place = () => ({ writer: state.writer ?? LADDER_WRITER, sequence: ++state.sequence });
  const idle = (): boolean =>
    state.requests.length === 0 &&
    state.waiting === undefined &&
    entries.length === 0 &&
    Object.keys(state.asked).length === 0 &&
    !launching;

  const handedOver = (): boolean => !launching && entries.length === 0;

  listen(escalationWanted, escalationRequest, (request) => {
    // Whose step is escalated has not come to its end.
    state.closed = false;
    (reopened ? later : state.requests).push(request);
  });
  setHandler(escalationAwaited, () => undefined);
  setHandler(ladderClosed, () => void (state.closed = true));
  setHandler(ladderReopened, () => {
    state.closed = false;
    reopened = gone;
  });
  const lose = (): void => {
    gone = true;
    reopened = false;
    // Of whom nobody is left, nothing can be asked.
    stopAsking();
  };
  setHandler(runGone, lose);
  listen(ladderSwept, sweptList, (found) => found.forEach(noteSwept));
  listen(verdictArrived, arrivedShape, hear);
  setHandler(ladderStatus, () => ladderStatusOf(verification, state));

  // A ladder that is cancelled ends as one whose run is gone: what it has heard is written down first.
  CancellationScope.current().cancelRequested.catch(lose);
  return CancellationScope.nonCancellable(async () => {
    const broken = new Promise<never>((_, reject) => {
      launch().catch(reject);
      watchRun().catch(reject);
    });
    try {
      return await Promise.race([work(), broken]);
    } catch (error) {
      // What continues as new has not failed, and what is no failure of Temporal's does not end the workflow.
      if (error instanceof TemporalFailure) {
        const damage = damageOf(error);
        await failSteps(damage?.type, damage?.message ?? `the ladder failed: ${rootMessage(error)}`);
      }
      throw error;
    }
  });

  async function work(): Promise<LadderStatus> {
    for (;;) {
      await condition(
        () =>
          gone ||
          state.waiting !== undefined ||
          state.requests.length > 0 ||
          entries.length > 0 ||
          (state.closed && idle()) ||
          workflowInfo().continueAsNewSuggested,
      );
      const request = state.waiting?.request ?? state.requests.shift();
      serving = request ?? null;
      if (request && !gone) await serve(request);
      if (gone) return leave();
      await writeDown();
      if (state.closed && idle()) return ladderStatusOf(verification, state);
      if (workflowInfo().continueAsNewSuggested) {
        leaving = true;
        // Each of these waits, and what arrives meanwhile may undo the other: both must hold at the same moment.
        while (!handedOver()) {
          await condition(() => !launching);
          await writeDown();
        }
        // That it has lost its run is not carried over.
        if (gone) return leave();
        await continueAsNew<typeof ladder>(input, { ...state, continued: state.continued + 1 });
      }
    }
  }

  /** Escalates a step, from the tier that it waits for on where it waits for one. */
  async function serve(request: EscalationRequest): Promise<void> {
    const { stage, step, groups } = request;
    // A run that was reset asks once more. What its steps cost, and what was heard since, is booked already.
    if (step <= (state.settled?.[stage] ?? 0)) return reply(request, (await settleStep(request)).answer);
    if (stage !== state.stage) {
      state.stage = stage;
      // What is still under way was promised by the stage before.
      state.accounts = tiers.map(() => emptyAccount());
    }
    // Of a stage they stay the same, unless a person has changed them since its last step.
    state.budgets = tiers.map(({ verifier, budget }) => request.budgets[verifier] ?? budget);
    const now: StepGroups = { stage, step, groups };
    const begun = state.waiting;
    if (begun && (await waitFor(begun)) === 'continues as new') return;
    for (let tier = (begun?.rung ?? 0) + 1; tier < tiers.length; tier++) {
      if (gone) return;
      const budget = ofStep(state.budgets[tier]!, state.accounts[tier]!);
      for (let more = true, round = 0; more; round++) {
        // What has come must be heard, or it would be asked for again.
        while (entries.length > 0) await writeDown();
        const plan = await ladderActivities.planClimb({
          ...deciding(`${tier}-${round}`, now),
          rung: tier,
          again: round > 0,
          budget,
          account: state.accounts[tier]!,
          underWay: underWay(tier),
        });
        state.calibrations = plan.calibrations;
        state.totals = mergeTotals(state.totals, plan.totals);
        const number = state.sequence;
        plan.digests.forEach((digest, index) => {
          const cost = plan.costs[index]!;
          state.accounts[tier] = reserve(state.accounts[tier]!, cost);
          const name = key(plan.verifier, digest);
          state.asked[name] = { rung: tier, stage, cost, late: false, plan: number, index };
        });
        const { asks, digests } = plan;
        if (asks) state.queued.push({ plan: number, rung: tier, stage, asks, from: 0, to: digests.length });
        more = plan.more;
      }
      const { wait, deadlineSeconds } = tiers[tier]!;
      const waiting = { request, rung: tier, deadline: Date.now() + deadlineSeconds * 1000 };
      if (wait && (await waitFor(waiting)) === 'continues as new') return;
    }
    while (entries.length > 0) await writeDown();
    if (gone) return;
    for (const one of Object.values(state.asked)) one.late = true;
    const settling = settleStep(request);
    // What comes from here on is for the next step.
    state.came = tiers.map(() => []);
    const { totals, calibrations, settled, answer } = await settling;
    state.calibrations = calibrations;
    state.totals = mergeTotals(state.totals, totals);
    const most = verification.offerLateFor;
    const remembered = most === 0 ? [] : [...state.recent, now].slice(-most);
    state.recent = remembered.map((one) => ({
      ...one,
      settled: one.groups.map((ref, i) => settled[ref.key] ?? one.settled?.[i] ?? ref),
    }));
    state.settled = { ...state.settled, [stage]: step };
    await reply(request, answer);
  }

  /** What the verdicts of a step came to; of one that was settled before what they came to then, which is kept. */
  async function settleStep({ id, stage, step, groups, reward }: EscalationRequest) {
    const { totals, calibrations, settled, ...answer } = await ladderActivities.settleClimb({
      ...deciding('settled', { stage, step, groups }),
      reward,
    });
    return { totals, calibrations, settled, answer: { id, ...answer } };
  }

  /** What a decision of a step follows from. */
  function deciding(decision: string, now: StepGroups) {
    const { calibrations, came } = state;
    const steps = [...state.recent, now];
    return { run, decision, verification, calibrations, steps, came, ledger: place() };
  }

  /** Until a tier has answered all that the step asks of it, its time is up, or this execution's history is full. */
  async function waitFor(waiting: WaitingStep): Promise<'goes on' | 'continues as new'> {
    const { rung: asked, deadline } = waiting;
    const answered = (): boolean =>
      gone || !Object.values(state.asked).some(({ rung: tier, late }) => tier === asked && !late);
    if (answered()) return goOn();
    state.waiting = waiting;
    const until = (): boolean => answered() || workflowInfo().continueAsNewSuggested;
    const inTime = await condition(until, Math.max(1, deadline - Date.now()));
    return inTime && !answered() ? 'continues as new' : goOn();

    function goOn(): 'goes on' {
      state.waiting = undefined;
      return 'goes on';
    }
  }

  /** A verdict came: its promise is settled, and what it cost is booked. One that comes twice is heard once. */
  function hear(arrived: Arrived): void {
    const { verifier, digest, spent } = arrived;
    const asked = state.asked[key(verifier, digest)];
    if (!asked) return;
    delete state.asked[key(verifier, digest)];
    const { rung: tier, stage, cost, late } = asked;
    state.inFlight[tier]!--;
    const counted = verification.counts === 'verdicts' || spent !== null;
    if (stage === state.stage) {
      state.accounts[tier] = settle(state.accounts[tier]!, cost, spent, counted);
    }
    state.came[tier]!.push(digest);
    entries.push(...entriesOf(arrived, { stage, late, afterRun: state.closed }));
  }

  function noteSwept({ verifier, digest }: Swept): void {
    const tier = tiers.findIndex((one) => one.verifier === verifier);
    if (tier > 0) state.came[tier]!.push(digest);
  }

  /** Asks as places get free. Goes on beside the steps, because a tier need not be waited for. */
  async function launch(): Promise<void> {
    const free = (tier: number): number => tiers[tier]!.concurrency - state.inFlight[tier]!;
    const ready = (): number =>
      gone
        ? -1
        : state.queued.findIndex(({ rung: tier, stage }) => free(tier) > 0 || isOverdrawn(tier, stage));
    for (;;) {
      await condition(() => ready() >= 0 && !leaving);
      const at = ready();
      if (leaving || at < 0) continue;
      launching = true;
      const next = state.queued[at]!;
      const { asks, from, rung: tier, stage } = next;
      if (isOverdrawn(tier, stage)) await withdrawFrom(tier, stage);
      else {
        const to = Math.min(next.to, from + free(tier));
        next.from = to;
        if (to === next.to) state.queued.splice(at, 1);
        state.inFlight[tier]! += to - from;
        await verdictActivities.requestVerdicts({ asks, from, to, requester: workflowInfo().workflowId });
      }
      launching = false;
    }
  }

  function isOverdrawn(tier: number, stage: string): boolean {
    return stage === state.stage && overdrawn(state.budgets[tier]!, state.accounts[tier]!);
  }

  /** Takes back what was planned last, until the budget holds the rest, or nothing is left that has not begun. */
  async function withdrawFrom(tier: number, stage: string): Promise<void> {
    const at = state.queued.findLastIndex((one) => one.rung === tier && one.stage === stage);
    const queued = state.queued[at]!;
    const { plan, asks, to } = queued;
    while (queued.to > queued.from && isOverdrawn(tier, stage)) {
      const index = --queued.to;
      const name = Object.keys(state.asked).find((one) => {
        const asked = state.asked[one]!;
        return asked.plan === plan && asked.index === index;
      })!;
      state.accounts[tier] = settle(state.accounts[tier]!, state.asked[name]!.cost, null);
      delete state.asked[name];
    }
    const from = queued.to;
    if (queued.to === queued.from) state.queued.splice(at, 1);
    const totals = await ladderActivities.withdraw({ run, stage, asks, from, to, ledger: place() });
    state.totals = mergeTotals(state.totals, totals);
  }

  /** Takes back what has not begun. What has goes on for whoever else waits for it, and its verdict is kept for all. */
  async function leave(): Promise<LadderStatus> {
    await condition(() => !launching);
    // It may have been cancelled alone: then its run goes on, and must not wait for it.
    await failSteps(
      'gradus.infra.ladder',
      `the ladder ${ids.ladder(run)} was cancelled, or told that its run has ended`,
    );
    for (const { stage, asks, from: begun, to } of state.queued.splice(0)) {
      const totals = await ladderActivities.withdraw({ run, stage, asks, from: begun, to, ledger: place() });
      state.totals = mergeTotals(state.totals, totals);
    }
    while (entries.length > 0) await writeDown();
    if (reopened) {
      const { sequence, writer } = state;
      const anew = { ...initialLadderState(verification), sequence, ...(writer !== undefined && { writer }) };
      await continueAsNew<typeof ladder>(input, { ...anew, requests: later });
    }
    return ladderStatusOf(verification, state);
  }

  /** A run that was terminated tells nobody. */
  async function watchRun(): Promise<void> {
    const execution = { workflowId: parent.workflowId, firstRunId };
    for (;;) {
      await condition(() => gone || !state.closed);
      if (gone) return;
      await sleep(WATCH_INTERVAL);
      const over = await runWatchActivities.isRunOver(execution);
      if (over && !state.closed) lose();
    }
  }

  async function writeDown(): Promise<void> {
    const page = entries.splice(0, LEDGER_PAGE);
    if (page.length === 0) return;
    state.totals = addEntries(state.totals, page);
    await ladderActivities.keepLedger({ run, heard: true, ledger: place(), entries: page });
  }

  /** Steps that wait for an answer must not wait for ever. */
  async function failSteps(type: string | null | undefined, message: string): Promise<void> {
    const failure = { type: type ?? 'gradus.infra.ladder', message };
    const steps = serving === null ? state.requests : [serving, ...state.requests];
    for (const step of steps) await reply(step, { id: step.id, ...failure });
  }

  async function reply(
    { replyTo }: EscalationRequest,
    answer: EscalationReply | EscalationFailure,
  ): Promise<void> {
    serving = null;
    const step = getExternalWorkflowHandle(replyTo);
    try {
      await ('message' in answer ? step.signal(escalationFailed, answer) : step.signal(escalated, answer));
    } catch (error) {
      if (isCancellation(error)) throw error;
      log.info('a step that wanted to escalate has ended', { replyTo, reason: String(error) });
    }
  }

  function underWay(tier: number): string[] {
    const mine = Object.entries(state.asked).filter(([, asked]) => asked.rung === tier);
    return mine.map(([name]) => name.slice(name.lastIndexOf('/') + 1));
  }
}
