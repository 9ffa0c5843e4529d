import {
  allHandlersFinished,
  ApplicationFailure,
  CancellationScope,
  ChildWorkflowCancellationType,
  condition,
  continueAsNew,
  currentUpdateInfo,
  getExternalWorkflowHandle,
  isCancellation,
  log,
  ParentClosePolicy,
  setHandler,
  startChild,
  TemporalFailure,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import { WorkflowExecutionAlreadyStartedError } from '@temporalio/common';
import type {
  ChildWorkflowHandle,
  SignalDefinition,
  Workflow,
  WorkflowResultType,
} from '@temporalio/workflow';
import { addIncidents } from '../core/episode/incidents.ts';
import type { Incident } from '../core/episode/incidents.ts';
import { addTokens } from '../core/training/figures.ts';
import { runCurriculum } from '../core/training/curriculum.ts';
import type { CurriculumResult, CurriculumState } from '../core/training/curriculum.ts';
import { ids } from '../core/names.ts';
import { refuseAnswer, refuseLate } from '../core/question.ts';
import type { Decision, OpenQuestion } from '../core/question.ts';
import type { CurriculumSpec } from '../core/schema/curriculum-spec.ts';
import type { VerificationSpec } from '../core/schema/verification.ts';
import type { Retrying } from '../core/retrying.ts';
import { withChange } from '../core/run-change.ts';
import type { StoredChange, RunChange } from '../core/run-change.ts';
import { addTime, noTime, splitTime } from '../core/time/time-split.ts';
import type { TimeSplit } from '../core/time/time-split.ts';
import { curriculumActivities, rolloutActivities } from './activities.ts';
import { askPerson, takeAnswer } from './ladder/ask.ts';
import { Control } from './control/control.ts';
import type { ControlState } from './control/control.ts';
import {
  activityRetried,
  change,
  changesMade,
  decide,
  decided,
  ladderClosed,
  ladderReopened,
  pause,
  progress,
  questionAsked,
  resume,
  runGone,
  stepReported,
  stop,
} from './control/messages.ts';
import type { Progress, RunAlarm } from './control/messages.ts';
import type { ladder } from './ladder/ladder.ts';
import { listen } from './control/listen.ts';
import { openQuestion, retryReport, stepReport } from './control/message-shapes.ts';
import { evaluateChild, ownCancellation, rootMessage, stoppedOrThrow, TAKING_OVER } from './ports.ts';
import { onlyContinued } from './control/refuse.ts';
import { isNews, refuseChange, refuseForm } from './control/refuse-change.ts';
import type { RunToChange } from './control/refuse-change.ts';
import { searchAttributes } from './search-attributes.ts';
import type { reward } from './training/reward.ts';
import type { stage } from './training/stage.ts';
import type { supervised } from './training/supervised.ts';
import { noteUnknownSignals } from './control/unknown-names.ts';
import { retryAfterRepair } from './control/retry-after-repair.ts';

const STOP_WITHOUT_CHECKPOINT = {
  answer: 'stop',
  effect: 'end the run, which has no checkpoint yet',
} as const;

/** Signals of unknown names that a run shows. */
const MOST_UNKNOWN = 8;
/** Alarms that `progress` shows. */
const MOST_ALARMS = 8;
/** Changes that it shows. */
const MOST_CHANGES = 8;
/** How often a ladder may end while a run that was reset takes it over. */
const MOST_LADDERS = 5;

/** Carried over continue-as-new, between stages. */
interface Carried {
  spec: CurriculumSpec;
  state: CurriculumState;
  control: ControlState;
  seconds: TimeSplit;
  /** Missing in runs that are older than this field. */
  tokens?: Progress['tokens'];
  incidents: Incident[];
  alarms: RunAlarm[];
  /** Shown last; absent where an older version has carried over. */
  step?: Progress['step'];
  heldOut?: Progress['heldOut'];
  learnerBackend?: string | null;
  retrying: [id: string, what: Retrying][];
  questions: OpenQuestion[];
  /** Missing in runs that are older than this field. */
  unknownSignals?: string[];
  changes?: StoredChange[];
}

type StageWorkflow = typeof supervised | typeof reward | typeof stage;

/**
 * A whole training run, started with a curriculum spec as a person writes it
 * (`temporal workflow start --type curriculum --input-file …`). Fails, non-retryable and before anything is spent,
 * when the spec is wrong. Serves the query `progress`, the signals `pause`, `resume` and `stop`, and the updates
 * `decide` and `change`.
 */
export async function curriculum(written: unknown, carried?: Carried): Promise<CurriculumResult> {
  onlyContinued(carried);
  const control = new Control(carried?.control);
  /** The workflow that control messages are passed on to, while it runs. */
  let child: Promise<Pick<ChildWorkflowHandle<Workflow>, 'signal'>> | null = null;
  const shown: Progress = {
    run: workflowInfo().workflowId,
    phase: carried ? 'next stage' : 'spec',
    status: 'running',
    failure: null,
    question: null,
    stages: carried?.spec.stages.map((stage) => stage.name) ?? [],
    step: carried?.step ?? null,
    heldOut: carried?.heldOut ?? null,
    before: carried?.state.before ?? null,
    after: null,
    checkpoint: carried?.state.checkpoint ?? null,
    finished: carried?.state.stages ?? [],
    seconds: carried?.seconds ?? noTime(),
    tokens: carried?.tokens ?? {},
    learnerBackend: carried?.learnerBackend ?? null,
    retrying: [],
    incidents: carried?.incidents ?? [],
    alarms: carried?.alarms ?? [],
    unknownSignals: carried?.unknownSignals ?? [],
    changes: carried?.changes ?? [],
  };
  /** What the run does: null until its spec has been read. */
  let opened: CurriculumSpec | null = carried?.spec ?? null;
  /** It continues as new when nobody is being answered any more. */
  let leaving = false;
  /** Stages that have ended. */
  const over = new Set(carried?.state.stages.map(({ name }) => name));
  let looked: RunToChange['looked'] = null;
  const retrying = new Map(carried?.retrying);
  /** What workflows of the run wait to be told, in the order in which they asked. The first one is shown. */
  let questions: OpenQuestion[] = carried?.questions ?? [];
  serveControl();
  setHandler(progress, () => ({
    ...shown,
    status: status(),
    question: questions[0] ?? null,
    retrying: [...retrying.values()],
  }));
  listen(activityRetried, retryReport, ({ id, retrying: what }) => {
    if (what === null) retrying.delete(id);
    else retrying.set(id, what);
  });
  listen(questionAsked, openQuestion, async (question) => {
    if (control.stopping) await answerIt(question, 'stop');
    else questions.push(question);
  });
  listen(stepReported, stepReport, ({ secondsSince, tokensSince, ...step }) => {
    shown.step = step;
    shown.heldOut = step.heldOut ?? shown.heldOut;
    if (step.heldOut?.errorLeft !== undefined)
      looked = {
        stage: step.stage,
        step: step.stageStep,
        errorLeft: step.heldOut.errorLeft,
        // Reports of older versions do not have it: no part is known that others must not exceed.
        errorPart: step.heldOut.errorPart ?? 1,
      };
    shown.checkpoint = step.checkpoint;
    shown.learnerBackend = step.backend ?? shown.learnerBackend;
    shown.seconds = addTime(shown.seconds, secondsSince);
    if (tokensSince)
      shown.tokens = {
        ...shown.tokens,
        [step.stage]: addTokens(shown.tokens?.[step.stage] ?? null, tokensSince)!,
      };
    shown.incidents = addIncidents(shown.incidents, step.incidents ?? []);
    const found = (step.alarms ?? []).map((alarm) => ({ stage: step.stage, ...alarm }));
    shown.alarms = [...shown.alarms, ...found].slice(-MOST_ALARMS);
    upsertSearchAttributes(
      searchAttributes({
        stage: step.stage,
        step: step.step,
        environment: step.environment,
        policyVersion: step.checkpoint.weights,
        ...(step.meanReward === null ? {} : { meanReward: step.meanReward }),
      }),
    );
  });

  noteUnknownSignals([pause.name, resume.name, stop.name], (problem) => {
    const others = shown.unknownSignals.filter((one) => one !== problem);
    shown.unknownSignals = [...others, problem].slice(-MOST_UNKNOWN);
  });

  /** The ladder's id, once it is there. */
  let ladderId: string | null = null;
  const scope = CancellationScope.current();
  /** What `GradusStatus` says. */
  let listed: Progress['status'] | null = null;
  const list = (): void => {
    if (status() === listed) return;
    listed = status();
    upsertSearchAttributes(searchAttributes({ status: listed }));
  };
  void CancellationScope.nonCancellable(async () => {
    for (;;) {
      await condition(() => status() !== listed);
      list();
    }
  });
  try {
    const result = await train();
    await condition(answered);
    await notifyLadder(ladderClosed);
    shown.checkpoint = result.checkpoint;
    shown.finished = result.stages;
    await condition(() => answered() && allHandlersFinished());
    shown.status = result.end;
    shown.phase = 'done';
    list();
    return result;
  } catch (error) {
    // Whatever else is thrown does not end the workflow.
    if (!(error instanceof TemporalFailure)) throw error;
    const cancelled = ownCancellation(error);
    shown.status = cancelled ? 'cancelled' : 'failed';
    shown.failure = cancelled ? null : rootMessage(error);
    list();
    await CancellationScope.nonCancellable(() => notifyLadder(runGone));
    throw error;
  }

  /** The ladder may ask while nothing else is left to do, and waits for ever if the run ends meanwhile. */
  function answered(): boolean {
    return !questions.some(({ asker }) => asker === ladderId);
  }

  async function notifyLadder(signal: SignalDefinition): Promise<void> {
    if (ladderId === null) return;
    try {
      await getExternalWorkflowHandle(ladderId).signal(signal);
    } catch (error) {
      if (isCancellation(error)) throw error;
      log.info('the ladder has ended before its run', { reason: String(error) });
    }
  }

  /**
   * Starts the ladder, which outlives the run: verdicts may come days later. A run that was reset goes on with the one
   * that it has, also where that has been told that the run is over; where it has just ended, with another one.
   */
  async function openLadder(run: string, verification: VerificationSpec): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        await startChild<typeof ladder>('ladder', {
          args: [{ run, verification, firstRunId: workflowInfo().firstExecutionRunId }],
          workflowId: ids.ladder(run),
          parentClosePolicy: ParentClosePolicy.ABANDON,
          // A run that is cancelled tells it to end; a cancellation would cut off what it has to write down.
          cancellationType: ChildWorkflowCancellationType.ABANDON,
          typedSearchAttributes: searchAttributes({ run, stage: 'ladder' }),
        });
        return;
      } catch (error) {
        if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
      }
      try {
        await getExternalWorkflowHandle(ids.ladder(run)).signal(ladderReopened);
        return;
      } catch (error) {
        if (isCancellation(error) || attempt === MOST_LADDERS) throw error;
        log.info('the ladder of an earlier time has just ended', { reason: String(error) });
      }
    }
  }

  async function train(): Promise<CurriculumResult> {
    const spec =
      carried?.spec ??
      (await curriculumActivities.openRun({
        spec: written,
        workflowId: workflowInfo().workflowId,
        firstExecutionRunId: workflowInfo().firstExecutionRunId,
      }));
    opened = spec;
    shown.run = spec.run;
    shown.stages = spec.stages.map((stage) => stage.name);
    upsertSearchAttributes(searchAttributes({ run: spec.run }));

    if (spec.policy?.kind === 'http' && !carried) {
      const scalesLogits =
        spec.sampling.temperature !== 1 ||
        spec.stages.some((stage) => stage.kind === 'rl' && stage.exploration?.temperature !== undefined);
      await rolloutActivities.assertServersCan({ policy: spec.policy, scalesLogits });
    }
    if (spec.agent && !carried) await rolloutActivities.assertAgentStarts({ agent: spec.agent });
    if (spec.verification) ladderId = ids.ladder(spec.run);
    if (spec.verification && !carried) await openLadder(spec.run, spec.verification);

    return runCurriculum(
      {
        initialize: async (request) => {
          const start = Date.now();
          const checkpoint = await retryAfterRepair(
            () => curriculumActivities.initializeModel(request),
            ({ reason, answers: [again] }) =>
              askPerson(
                { reason, answers: [again!, STOP_WITHOUT_CHECKPOINT] },
                (open) => void questions.push(open),
              ),
          );
          const end = Date.now();
          shown.seconds = addTime(shown.seconds, splitTime(start, end, [{ part: 'data', start, end }]));
          return checkpoint;
        },
        evaluate: async (request) => {
          const start = Date.now();
          const measured = await evaluateChild(request).catch(stoppedOrThrow).finally(forget);
          shown.seconds = addTime(shown.seconds, splitTime(start, Date.now(), measured.spans));
          shown.incidents = addIncidents(shown.incidents, measured.incidents ?? []);
          if (request.name === 'before') shown.before = measured;
          if (request.name === 'after') shown.after = measured;
          return measured;
        },
        supervised: (input) => inChild<typeof supervised>('supervised', input),
        reward: (input) => inChild<typeof reward>('reward', input),
        stage: (input) => inChild<typeof stage>('stage', input),
        entered: (phase) => {
          shown.phase = phase;
          upsertSearchAttributes(searchAttributes({ stage: phase }));
        },
      },
      spec,
      carried?.state ?? null,
      async (state) => {
        shown.checkpoint = state.checkpoint;
        shown.finished = state.stages;
        const verdict = await control.pass();
        if (verdict === 'go' && workflowInfo().continueAsNewSuggested) {
          leaving = true;
          await condition(allHandlersFinished);
          const {
            step,
            heldOut,
            seconds,
            tokens,
            learnerBackend,
            incidents,
            alarms,
            unknownSignals,
            changes,
          } = shown;
          const carry: Carried = {
            spec,
            state,
            control: control.state,
            step,
            heldOut,
            seconds,
            ...(tokens && { tokens }),
            learnerBackend,
            incidents,
            alarms,
            retrying: [...retrying],
            questions,
            unknownSignals,
            changes,
          };
          await continueAsNew<typeof curriculum>(null, carry);
        }
        return verdict;
      },
    );
  }

  function status(): Progress['status'] {
    if (shown.status !== 'running') return shown.status;
    if (control.stopping || scope.consideredCancelled) return 'stopping';
    if (questions.length > 0) return 'waiting';
    return control.paused ? 'paused' : 'running';
  }

  async function answerIt({ id, asker }: OpenQuestion, answer: Decision): Promise<void> {
    const message = { question: id, answer };
    if (asker === workflowInfo().workflowId) return takeAnswer(message);
    try {
      await getExternalWorkflowHandle(asker).signal(decided, message);
    } catch (error) {
      if (isCancellation(error)) throw error;
      log.info('who asked has ended', { asker, reason: String(error) });
    }
  }

  /** Whoever asked has ended, answered or not, and nothing of it is tried again; only the ladder goes on. */
  function forget(): void {
    questions = questions.filter(({ asker }) => asker === ladderId);
    for (const [id, { workflow }] of retrying) if (workflow !== ladderId) retrying.delete(id);
  }

  /** A stage is a workflow of its own, which is given what was asked of the run before. */
  async function inChild<T extends StageWorkflow>(
    type: string,
    input: Parameters<T>[0],
  ): Promise<WorkflowResultType<T>> {
    const { run } = input.spec;
    const { name } = input.stage;
    const starting = startChild<T>(type, {
      ...TAKING_OVER,
      args: [input, null, control.state] as unknown as Parameters<T>,
      workflowId: ids.stage(run, name),
      typedSearchAttributes: searchAttributes({ run, stage: name }),
    });
    child = starting;
    try {
      return await (await starting).result();
    } finally {
      child = null;
      over.add(name);
      forget();
    }
  }

  /** The control messages reach the curriculum and are passed on to the stage that is running. */
  function serveControl(): void {
    let passed = Promise.resolve();
    // One after the other: of signals under way together the server keeps no order.
    const pass = <Args extends unknown[]>(signal: SignalDefinition<Args>, ...args: Args): Promise<void> =>
      (passed = passed.then(() => deliver(signal, args)));
    const deliver = async <Args extends unknown[]>(
      signal: SignalDefinition<Args>,
      args: Args,
    ): Promise<void> => {
      if (child === null) return;
      try {
        // One that is only just starting was given what was asked before.
        await (await child).signal(signal, ...args);
      } catch (error) {
        // The child ended meanwhile; what was asked is kept here and holds for the next one.
        log.info('a control message found its stage ended', { reason: String(error) });
      }
    };
    setHandler(pause, async () => {
      control.paused = true;
      await pass(pause);
    });
    setHandler(resume, async () => {
      control.paused = false;
      await pass(resume);
    });
    const stopRun = async (): Promise<void> => {
      control.stopping = true;
      const open = questions;
      questions = [];
      await Promise.all([pass(stop), ...open.map((question) => answerIt(question, 'stop'))]);
    };
    setHandler(stop, stopRun);
    setHandler(
      decide,
      async (answer: Decision) => {
        if (answer === 'stop') {
          await stopRun();
          return answer;
        }
        const { reason } = questions[0]!;
        // Who met the same damage asks the same. All are answered: a second answer comes too late.
        const same = questions.filter((one) => one.reason === reason);
        questions = questions.filter((one) => one.reason !== reason);
        await Promise.all(same.map((question) => answerIt(question, answer)));
        return answer;
      },
      {
        validator: (answer: unknown, named?: unknown) => {
          const question = questions[0];
          const refusal =
            question === undefined
              ? 'the run waits for no decision'
              : (refuseLate(question, named) ?? refuseAnswer(question, answer));
          if (refusal !== null) throw ApplicationFailure.nonRetryable(refusal, 'gradus.spec.answer');
        },
      },
    );

    /** One after the other: each has its number. */
    let changing: Promise<unknown> = Promise.resolve();
    setHandler(
      change,
      (wanted: RunChange) => {
        const { id } = currentUpdateInfo()!;
        const made = changing.then(() => makeChange(wanted, id));
        changing = made.catch(() => undefined);
        return made;
      },
      {
        validator: (wanted: unknown) => {
          if (leaving)
            refuse('the run is between two stages, and takes changes again in a moment: try again');
          if (opened === null) {
            refuse(refuseForm(wanted));
            return;
          }
          refuse(refuseAsItStands(wanted, opened));
          if (!isNews(wanted as RunChange, opened, control.changed))
            refuse('this changes nothing: the run has these limits already');
        },
      },
    );

    async function makeChange(
      { budgets, maxSteps, reason }: RunChange,
      update: string,
    ): Promise<StoredChange> {
      // One that came before the spec was read; and what went before it has taken its time.
      await condition(() => opened !== null);
      const { run } = opened!;
      const wanted = {
        ...(budgets && { budgets }),
        ...(maxSteps && { maxSteps }),
        ...(reason && { reason }),
      };
      refuse(refuseAsItStands(wanted, opened!));
      const after = control.changed.newest;
      const { phase, step } = shown;
      const stands = {
        at: new Date().toISOString(),
        stage: phase,
        step: step?.stage === phase ? step.stageStep : null,
      };
      const made = { number: after + 1, after, update, ...stands, ...wanted };
      const kept = await curriculumActivities.keepChange({ run, made });
      control.changed = withChange(control.changed, kept);
      shown.changes = [...shown.changes, kept].slice(-MOST_CHANGES);
      await pass(changesMade, control.changed);
      return kept;
    }

    function refuseAsItStands(wanted: unknown, spec: CurriculumSpec): string | null {
      if (control.stopping) return 'the run is being stopped';
      return refuseChange(wanted, spec, { over, changed: control.changed, looked });
    }
  }
}

function refuse(refusal: string | null): void {
  if (refusal !== null) throw ApplicationFailure.nonRetryable(refusal, 'gradus.spec.change');
}
