import type { FC } from 'hono/jsx';
import { sampledToLearn } from '../../../core/training/figures.ts';
import { total } from '../../../core/training/stage-policy.ts';
import {
  belowGoal,
  equalGroupsLately,
  equalGroupsText,
  standingAlarms,
} from '../../../runs/overview/concerns.ts';
import type { Concern } from '../../../runs/overview/concerns.ts';
import { runStatusOf } from '../../../runs/overview/runs.ts';
import { stageText } from '../../../runs/overview/stage-at.ts';
import type { RunView } from '../../../runs/overview/run.ts';
import type { StoredStep } from '../../../store/training/step-facts.ts';
import { runAt } from '../../address.ts';
import type { Context } from '../../context.ts';
import { Num, Reported, Success, Time, duration } from '../../parts/numbers.tsx';
import { Status } from '../../parts/status.tsx';
import { Text } from '../../parts/text.tsx';

/** What the run itself says, or what its steps and Temporal say of it. */
function standingOf({ progress, execution, steps }: RunView): string {
  if (progress.value) return progress.value.status;
  if (execution.value) return runStatusOf(execution.value);
  // One that does not answer may know it yet.
  if (execution.problem !== null) return 'unknown';
  return (steps.value?.length ?? 0) > 0 ? 'forgotten by Temporal' : 'unknown';
}

/** What speaks against a result is not to be looked for among the charts. */
function concernsOf({ steps, spec }: RunView, status: string): Concern[] {
  const all = steps.value ?? [];
  const last = all.at(-1);
  if (last === undefined) return [];
  const heldOut = all.findLast((step) => step.stage === last.stage && step.heldOut !== null)?.heldOut ?? null;
  return [...standingAlarms(all), ...(status === 'completed' ? belowGoal(last, heldOut, spec) : [])];
}

/** From this part of groups without contrast on it is shown as a warning. */
const MOSTLY = 0.9;

export const RunStanding: FC<{ view: RunView; last: StoredStep | undefined; context: Context }> = ({
  view,
  last,
  context,
}) => {
  const { execution, progress, spec } = view;
  const now = progress.value;
  const status = standingOf(view);
  const heldOut =
    now?.heldOut ?? view.steps.value?.findLast(({ heldOut }) => heldOut !== null)?.heldOut ?? null;
  const sampled = (view.steps.value ?? []).reduce((sum, step) => sum + sampledToLearn(step), 0);
  const equal = equalGroupsLately(view.steps.value ?? []);
  return (
    <dl class="facts">
      <dt>status</dt>
      <dd>
        <Status status={status} concerns={concernsOf(view, status)} />
        {now?.failure && (
          <div>
            <Text value={now.failure} max={1000} />
          </div>
        )}
      </dd>
      {execution.value !== null && execution.value.closedAt !== null && progress.problem !== null && (
        <>
          <dt>not told</dt>
          <dd class="muted">
            by its workflow, which is over and does not answer: <Text value={progress.problem} max={300} />{' '}
            These facts are from the store.
          </dd>
        </>
      )}
      <dt>stage</dt>
      <dd>
        <Text value={stageText(now?.phase ?? null, now?.step ?? last ?? null, spec)} max={300} />
        {spec && ` (stages: ${spec.stages.map(({ name }) => name).join(', ')})`}
      </dd>
      <dt>held-out success</dt>
      <dd>{heldOut === null ? '–' : <Success of={total(heldOut.arms)} />}</dd>
      {now?.before && (
        <>
          <dt>before → after</dt>
          <dd>
            <Reported of={now.before} /> → {now.after ? <Reported of={now.after} /> : '…'}
          </dd>
        </>
      )}
      {now?.checkpoint && (
        <>
          <dt>{execution.value?.closedAt === null ? 'newest checkpoint' : 'final checkpoint'}</dt>
          <dd>
            <code title={now.checkpoint.weights}>
              {now.checkpoint.step}-{now.checkpoint.weights.slice(0, 12)}
            </code>
            , of step {now.checkpoint.step}
          </dd>
        </>
      )}
      <dt>sampled</dt>
      <dd>
        <Num value={sampled} /> tokens for training
      </dd>
      {equal !== null && (
        <>
          <dt>without contrast</dt>
          <dd class={equal.equal / equal.groups >= MOSTLY ? 'warn' : ''}>
            <Text value={equalGroupsText(equal)} max={300} />
          </dd>
        </>
      )}
      {now && (
        <>
          <dt>time of its steps</dt>
          <dd>
            {Object.entries(now.seconds)
              .filter(([, seconds]) => seconds > 0)
              .map(([part, seconds]) => `${part} ${duration(seconds)}`)
              .join(', ') || '–'}
          </dd>
        </>
      )}
      {execution.value && (
        <>
          <dt>workflow</dt>
          <dd>
            <code>
              <Text value={execution.value.workflowId} max={200} />
            </code>
            , begun <Time at={execution.value.startedAt} />
            {execution.value.closedAt && (
              <>
                , over since <Time at={execution.value.closedAt} />
              </>
            )}
            {context.temporalUi && (
              <>
                {' · '}
                <a
                  href={`${context.temporalUi}/namespaces/${encodeURIComponent(context.namespace)}/workflows/${encodeURIComponent(execution.value.workflowId)}/${execution.value.runId}/history`}
                  rel="noreferrer"
                >
                  in the Temporal UI
                </a>
              </>
            )}
          </dd>
        </>
      )}
      {(now?.retrying.length ?? 0) > 0 && (
        <>
          <dt class="warn">tried again</dt>
          <dd>
            <ul>
              {now!.retrying.map(({ activity, workflow, attempts, lastFailure }) => (
                <li>
                  {activity} of <Text value={workflow} max={200} />: attempt {attempts}; the last failed:{' '}
                  <Text value={lastFailure} max={500} />
                </li>
              ))}
            </ul>
          </dd>
        </>
      )}
      {(now?.changes?.length ?? 0) > 0 && (
        <>
          <dt>changed</dt>
          <dd>
            <a href={`${runAt(view.run)}/spec`}>
              its limits, the newest change is number {now!.changes.at(-1)!.number}
            </a>
          </dd>
        </>
      )}
      {(now?.unknownSignals.length ?? 0) > 0 && (
        <>
          <dt>ignored</dt>
          <dd>
            <ul>
              {now!.unknownSignals.map((signal) => (
                <li>
                  <Text value={signal} max={300} />
                </li>
              ))}
            </ul>
          </dd>
        </>
      )}
    </dl>
  );
};
