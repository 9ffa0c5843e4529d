import { ApplicationFailure, condition, currentUpdateInfo, setHandler } from '@temporalio/workflow';
import { withChange } from '../../core/run-change.ts';
import type { RunChange, StoredChange } from '../../core/run-change.ts';
import type { CurriculumSpec } from '../../core/schema/curriculum-spec.ts';
import { curriculumActivities } from '../activities.ts';
import type { Control } from '../control/control.ts';
import { change, changesMade } from '../control/messages.ts';
import type { Progress } from '../control/messages.ts';
import { isNews, refuseChange, refuseForm } from '../control/refuse-change.ts';
import type { RunToChange } from '../control/refuse-change.ts';
import type { RunningStage } from './running-stage.ts';

/** Changes that `progress` shows. */
const MOST_CHANGES = 8;

/** The run that is changed, as it stands at the time. */
export interface ChangingRun {
  control: Control;
  shown: Progress;
  stage: RunningStage;
  /** Null until it has been read. */
  spec: CurriculumSpec | null;
  /** It is about to continue as new. */
  leaving: boolean;
  over: RunToChange['over'];
  looked: RunToChange['looked'];
}

/** Serves the update `change`: changes are made one after the other, for each has its number. */
export function serveChanges(run: ChangingRun): void {
  let changing: Promise<unknown> = Promise.resolve();
  setHandler(
    change,
    (wanted: RunChange) => {
      const { id } = currentUpdateInfo()!;
      const made = changing.then(() => makeChange(run, wanted, id));
      changing = made.catch(() => undefined);
      return made;
    },
    {
      validator: (wanted: unknown) => {
        if (run.leaving)
          refuse('the run is between two stages, and takes changes again in a moment: try again');
        if (run.spec === null) {
          refuse(refuseForm(wanted));
          return;
        }
        refuse(refuseAsItStands(run, wanted, run.spec));
        if (!isNews(wanted as RunChange, run.spec, run.control.changed))
          refuse('this changes nothing: the run has these limits already');
      },
    },
  );
}

async function makeChange(
  run: ChangingRun,
  { budgets, maxSteps, reason }: RunChange,
  update: string,
): Promise<StoredChange> {
  // One that came before the spec was read; and what went before it has taken its time.
  await condition(() => run.spec !== null);
  const { control, shown } = run;
  const wanted = {
    ...(budgets && { budgets }),
    ...(maxSteps && { maxSteps }),
    ...(reason && { reason }),
  };
  refuse(refuseAsItStands(run, wanted, run.spec!));
  const after = control.changed.newest;
  const { phase, step } = shown;
  const stands = {
    at: new Date().toISOString(),
    stage: phase,
    step: step?.stage === phase ? step.stageStep : null,
  };
  const made = { number: after + 1, after, update, ...stands, ...wanted };
  const kept = await curriculumActivities.keepChange({ run: run.spec!.run, made });
  control.changed = withChange(control.changed, kept);
  shown.changes = [...shown.changes, kept].slice(-MOST_CHANGES);
  await run.stage.pass(changesMade, control.changed);
  return kept;
}

function refuseAsItStands(
  { control, over, looked }: ChangingRun,
  wanted: unknown,
  spec: CurriculumSpec,
): string | null {
  if (control.stopping) return 'the run is being stopped';
  return refuseChange(wanted, spec, { over, changed: control.changed, looked });
}

function refuse(refusal: string | null): void {
  if (refusal !== null) throw ApplicationFailure.nonRetryable(refusal, 'gradus.spec.change');
}
