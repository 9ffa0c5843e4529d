import {
  allHandlersFinished,
  ApplicationFailure,
  CancellationScope,
  condition,
  continueAsNew,
  setHandler,
  TemporalFailure,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import type { WorkflowResultType } from '@temporalio/workflow';
import { addIncidents } from '../../core/episode/incidents.ts';
import { runCurriculum } from '../../core/training/curriculum.ts';
import type { CurriculumResult, CurriculumState } from '../../core/training/curriculum.ts';
import { ids } from '../../core/names.ts';
import type { Decision, OpenQuestion } from '../../core/question.ts';
import type { CurriculumSpec } from '../../core/schema/curriculum-spec.ts';
import type { Retrying } from '../../core/retrying.ts';
import { addTime, splitTime } from '../../core/time/time-split.ts';
import { curriculumActivities, rolloutActivities } from '../activities.ts';
import { askPerson } from '../ladder/ask.ts';
import { Control } from '../control/control.ts';
import type { ControlState } from '../control/control.ts';
import {
  activityRetried,
  decide,
  ladderClosed,
  pause,
  progress,
  questionAsked,
  resume,
  runGone,
  stepReported,
  stop,
} from '../control/messages.ts';
import type { Progress, ReportedStep } from '../control/messages.ts';
import { listen } from '../control/listen.ts';
import { openQuestion, retryReport, stepReport } from '../control/message-shapes.ts';
import { evaluateChild, ownCancellation, rootMessage, stoppedOrThrow } from '../ports.ts';
import { onlyContinued } from '../control/refuse.ts';
import { searchAttributes } from '../search-attributes.ts';
import type { reward } from '../training/reward.ts';
import type { stage } from '../training/stage.ts';
import type { supervised } from '../training/supervised.ts';
import { noteUnknownSignals } from '../control/unknown-names.ts';
import { retryAfterRepair } from '../control/retry-after-repair.ts';
import { openLadder, tellLadder } from './ladder-of-run.ts';
import { carriedProgress, showStep, startProgress } from './progress.ts';
import type { CarriedProgress } from './progress.ts';
import { Questions, tellAnswer } from './questions.ts';
import { RunningStage } from './running-stage.ts';
import type { StageWorkflow } from './running-stage.ts';
import { serveChanges } from './serve-changes.ts';
import type { ChangingRun } from './serve-changes.ts';

const STOP_WITHOUT_CHECKPOINT = {
  answer: 'stop',
  effect: 'end the run, which has no checkpoint yet',
} as const;

/** Signals of unknown names that a run shows. */
const MOST_UNKNOWN = 8;

/** Carried over continue-as-new, between stages. */
interface Carried extends CarriedProgress {
  spec: CurriculumSpec;
  state: CurriculumState;
  control: ControlState;
  retrying: [id: string, what: Retrying][];
  questions: OpenQuestion[];
}

/**
 * A whole training run, started with a curriculum spec as a person writes it
 * (`temporal workflow start --type curriculum --input-file …`). Fails, non-retryable and before anything is spent,
 * when the spec is wrong. Serves the query `progress`, the signals `pause`, `resume` and `stop`, and the updates
 * `decide` and `change`.
 */
export async function curriculum(written: unknown, carried?: Carried): Promise<CurriculumResult> {
  onlyContinued(carried);
  const control = new Control(carried?.control);
  const shown = startProgress(carried);
  const running = new RunningStage();
  /** Stages that have ended. */
  const over = new Set(carried?.state.stages.map(({ name }) => name));
  const run: ChangingRun = {
    control,
    shown,
    stage: running,
    spec: carried?.spec ?? null,
    leaving: false,
    over,
    looked: null,
  };
  const retrying = new Map(carried?.retrying);
  const questions = new Questions(carried?.questions ?? []);
  serveControl();
  setHandler(progress, () => ({
    ...shown,
    status: status(),
    question: questions.first,
    retrying: [...retrying.values()],
  }));
  listen(activityRetried, retryReport, ({ id, retrying: what }) => {
    if (what === null) retrying.delete(id);
    else retrying.set(id, what);
  });
  listen(questionAsked, openQuestion, async (question) => {
    if (control.stopping) await tellAnswer(question, 'stop');
    else questions.add(question);
  });
  listen(stepReported, stepReport, noteStep);

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
    // The ladder may ask while nothing else is left to do, and waits for ever if the run ends meanwhile.
    await condition(() => !questions.isAskedBy(ladderId));
    await tellLadder(ladderId, ladderClosed);
    shown.checkpoint = result.checkpoint;
    shown.finished = result.stages;
    await condition(() => !questions.isAskedBy(ladderId) && allHandlersFinished());
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
    await CancellationScope.nonCancellable(() => tellLadder(ladderId, runGone));
    throw error;
  }

  async function train(): Promise<CurriculumResult> {
    const spec = carried?.spec ?? (await openRun());
    run.spec = spec;
    shown.run = spec.run;
    shown.stages = spec.stages.map(({ name }) => name);
    upsertSearchAttributes(searchAttributes({ run: spec.run }));
    if (!carried) await assertSamplersCan(spec);
    if (spec.verification) ladderId = ids.ladder(spec.run);
    if (spec.verification && !carried) await openLadder(spec.run, spec.verification);

    return runCurriculum(
      {
        initialize: async (request) => {
          const start = Date.now();
          const checkpoint = await retryAfterRepair(
            () => curriculumActivities.initializeModel(request),
            ({ reason, answers: [again] }) =>
              askPerson({ reason, answers: [again!, STOP_WITHOUT_CHECKPOINT] }, (open) =>
                questions.add(open),
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
        supervised: (input) => inStage<typeof supervised>('supervised', input),
        reward: (input) => inStage<typeof reward>('reward', input),
        stage: (input) => inStage<typeof stage>('stage', input),
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
          run.leaving = true;
          // It continues as new when nobody is being answered any more.
          await condition(allHandlersFinished);
          const carry: Carried = {
            ...carriedProgress(shown),
            spec,
            state,
            control: control.state,
            retrying: [...retrying],
            questions: questions.open,
          };
          await continueAsNew<typeof curriculum>(null, carry);
        }
        return verdict;
      },
    );
  }

  function openRun(): Promise<CurriculumSpec> {
    const { workflowId, firstExecutionRunId } = workflowInfo();
    return curriculumActivities.openRun({ spec: written, workflowId, firstExecutionRunId });
  }

  async function inStage<T extends StageWorkflow>(
    type: string,
    input: Parameters<T>[0],
  ): Promise<WorkflowResultType<T>> {
    try {
      return await running.run<T>(type, input, control.state);
    } finally {
      over.add(input.stage.name);
      forget();
    }
  }

  /** Whoever asked has ended, answered or not, and nothing of it is tried again; only the ladder goes on. */
  function forget(): void {
    questions.keepOf(ladderId);
    for (const [id, { workflow }] of retrying) if (workflow !== ladderId) retrying.delete(id);
  }

  function noteStep(report: ReportedStep): void {
    showStep(shown, report);
    const { stage, step, stageStep, environment, heldOut, checkpoint, meanReward } = report;
    if (heldOut?.errorLeft !== undefined)
      run.looked = {
        stage,
        step: stageStep,
        errorLeft: heldOut.errorLeft,
        // Reports of older versions do not have it: no part is known that others must not exceed.
        errorPart: heldOut.errorPart ?? 1,
      };
    upsertSearchAttributes(
      searchAttributes({
        stage,
        step,
        environment,
        policyVersion: checkpoint.weights,
        ...(meanReward === null ? {} : { meanReward }),
      }),
    );
  }

  function status(): Progress['status'] {
    if (shown.status !== 'running') return shown.status;
    if (control.stopping || scope.consideredCancelled) return 'stopping';
    if (questions.first) return 'waiting';
    return control.paused ? 'paused' : 'running';
  }

  /** The control messages reach the curriculum and are passed on to the stage that is running. */
  function serveControl(): void {
    setHandler(pause, async () => {
      control.paused = true;
      await running.pass(pause);
    });
    setHandler(resume, async () => {
      control.paused = false;
      await running.pass(resume);
    });
    const stopRun = async (): Promise<void> => {
      control.stopping = true;
      await Promise.all([running.pass(stop), ...questions.stop()]);
    };
    setHandler(stop, stopRun);
    setHandler(
      decide,
      async (answer: Decision) => {
        await (answer === 'stop' ? stopRun() : questions.answer(answer));
        return answer;
      },
      {
        validator: (answer: unknown, named?: unknown) => {
          const refusal = questions.refuse(answer, named);
          if (refusal !== null) throw ApplicationFailure.nonRetryable(refusal, 'gradus.spec.answer');
        },
      },
    );
    serveChanges(run);
  }
}

/** Asks who samples whether it can, before anything is spent. */
async function assertSamplersCan({ policy, sampling, stages, agent }: CurriculumSpec): Promise<void> {
  if (policy?.kind === 'http') {
    const scalesLogits =
      sampling.temperature !== 1 ||
      stages.some((one) => one.kind === 'rl' && one.exploration?.temperature !== undefined);
    await rolloutActivities.assertServersCan({ policy, scalesLogits });
  }
  if (agent) await rolloutActivities.assertAgentStarts({ agent });
}
