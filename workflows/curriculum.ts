import {
  allHandlersFinished,
  ApplicationFailure,
  condition,
  continueAsNew,
  getExternalWorkflowHandle,
  log,
  ParentClosePolicy,
  setHandler,
  startChild,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import type {
  ChildWorkflowHandle,
  SignalDefinition,
  Workflow,
  WorkflowResultType,
} from '@temporalio/workflow';
import { runCurriculum } from '../core/curriculum.ts';
import type { CurriculumResult, CurriculumState } from '../core/curriculum.ts';
import { ids } from '../core/names.ts';
import { DECISIONS } from '../core/ports.ts';
import type { Decision } from '../core/ports.ts';
import type { CurriculumSpec } from '../core/spec.ts';
import { addTime, noTime, splitTime } from '../core/time-split.ts';
import type { TimeSplit } from '../core/time-split.ts';
import { curriculumActivities } from './activities.ts';
import { Control } from './control.ts';
import type { ControlState } from './control.ts';
import {
  decide,
  decided,
  ladderClosed,
  pause,
  progress,
  questionAsked,
  resume,
  stepReported,
  stop,
} from './messages.ts';
import type { Progress } from './messages.ts';
import type { ladder } from './ladder.ts';
import { evaluateChild } from './ports.ts';
import { searchAttributes } from './search-attributes.ts';
import type { stage } from './stage.ts';
import type { warmStart } from './warm-start.ts';

/** Carried over continue-as-new, between stages. */
interface Carried {
  spec: CurriculumSpec;
  state: CurriculumState;
  control: ControlState;
  seconds: TimeSplit;
}

/**
 * A whole training run, started with a curriculum spec as a person writes it
 * (`temporal workflow start --type curriculum --input-file …`). Fails, non-retryable and before anything is spent,
 * when the spec is wrong. Serves the query `progress`, the signals `pause`, `resume` and `stop`, and the update
 * `decide`.
 */
export async function curriculum(written: unknown, carried?: Carried): Promise<CurriculumResult> {
  const control = new Control(carried?.control);
  /** The workflow that control messages are passed on to, while it runs. */
  let child: Promise<Pick<ChildWorkflowHandle<Workflow>, 'signal'>> | null = null;
  const shown: Progress = {
    run: workflowInfo().workflowId,
    phase: carried ? 'next stage' : 'spec',
    status: 'running',
    question: null,
    stages: carried?.spec.stages.map((stage) => stage.name) ?? [],
    step: null,
    heldOut: null,
    before: carried?.state.before ?? null,
    after: null,
    checkpoint: carried?.state.checkpoint ?? null,
    finished: carried?.state.stages ?? [],
    seconds: carried?.seconds ?? noTime(),
    learnerBackend: null,
  };
  serveControl();
  setHandler(progress, () => ({ ...shown, status: status() }));
  setHandler(questionAsked, (question) => void (shown.question = question));
  setHandler(stepReported, (step) => {
    shown.step = step;
    shown.heldOut = step.heldOut ?? shown.heldOut;
    shown.checkpoint = step.checkpoint;
    shown.learnerBackend = step.backend ?? shown.learnerBackend;
    shown.seconds = addTime(shown.seconds, step.seconds);
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

  const spec =
    carried?.spec ??
    (await curriculumActivities.openRun({
      spec: written,
      workflowId: workflowInfo().workflowId,
      firstExecutionRunId: workflowInfo().firstExecutionRunId,
    }));
  shown.run = spec.run;
  shown.stages = spec.stages.map((stage) => stage.name);
  upsertSearchAttributes(searchAttributes({ run: spec.run }));

  if (spec.verification && !carried) {
    // It outlives the run: verdicts may come days later.
    await startChild<typeof ladder>('ladder', {
      args: [{ run: spec.run, verification: spec.verification }],
      workflowId: ids.ladder(spec.run),
      parentClosePolicy: ParentClosePolicy.ABANDON,
      typedSearchAttributes: searchAttributes({ run: spec.run, stage: 'ladder' }),
    });
  }

  const result = await runCurriculum(
    {
      initialize: curriculumActivities.initializeModel,
      evaluate: async (request) => {
        const start = Date.now();
        const measured = await evaluateChild(request);
        shown.seconds = addTime(shown.seconds, splitTime(start, Date.now(), measured.spans));
        if (request.name === 'before') shown.before = measured;
        if (request.name === 'after') shown.after = measured;
        return measured;
      },
      warmStart: (input) =>
        inChild(
          startChild<typeof warmStart>('warmStart', {
            args: [input, null, control.state],
            workflowId: ids.warmStart(spec.run),
            typedSearchAttributes: searchAttributes({ run: spec.run, stage: 'warm-start' }),
          }),
        ),
      stage: (input) =>
        inChild(
          startChild<typeof stage>('stage', {
            args: [input, null, control.state],
            workflowId: ids.stage(spec.run, input.stage.name),
            typedSearchAttributes: searchAttributes({ run: spec.run, stage: input.stage.name }),
          }),
        ),
      ask: async (question) => {
        const decision = await control.ask(() => void (shown.question = question));
        shown.question = null;
        return decision;
      },
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
        await condition(allHandlersFinished);
        const carry: Carried = { spec, state, control: control.state, seconds: shown.seconds };
        await continueAsNew<typeof curriculum>(null, carry);
      }
      return verdict;
    },
  );
  if (spec.verification) await getExternalWorkflowHandle(ids.ladder(spec.run)).signal(ladderClosed);
  shown.checkpoint = result.checkpoint;
  shown.finished = result.stages;
  shown.status = result.end;
  shown.phase = 'done';
  await condition(allHandlersFinished);
  return result;

  function status(): Progress['status'] {
    if (shown.status !== 'running') return shown.status;
    if (control.stopping) return 'stopping';
    if (shown.question !== null) return 'waiting';
    return control.paused ? 'paused' : 'running';
  }

  async function inChild<T extends Workflow>(
    starting: Promise<ChildWorkflowHandle<T>>,
  ): Promise<WorkflowResultType<T>> {
    child = starting;
    try {
      return await (await starting).result();
    } finally {
      // What is asked from here on is the curriculum's own question.
      child = null;
    }
  }

  /** The control messages reach the curriculum and are passed on to the stage that is running. */
  function serveControl(): void {
    const pass = async (signal: SignalDefinition): Promise<void> => {
      if (child === null) return;
      try {
        // One that is only just starting was given what was asked before.
        await (await child).signal(signal);
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
    setHandler(stop, async () => {
      control.stopping = true;
      await pass(stop);
    });
    setHandler(
      decide,
      async (decision: Decision) => {
        if (child === null) control.decide(decision);
        else await (await child).signal(decided, decision);
        return decision;
      },
      {
        validator: (decision: Decision) => {
          if (shown.question === null) throw ApplicationFailure.nonRetryable('the run waits for no decision');
          if (!DECISIONS.includes(decision)) {
            throw ApplicationFailure.nonRetryable(
              `"${decision as string}" is no decision: choose one of ${DECISIONS.join(', ')}`,
            );
          }
        },
      },
    );
  }
}
