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
import { Fact } from '../../parts/fact.tsx';
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
      <Fact term="status">
        <Status status={status} concerns={concernsOf(view, status)} />
        {now?.failure && (
          <div>
            <Text value={now.failure} max={1000} />
          </div>
        )}
      </Fact>
      {execution.value !== null && execution.value.closedAt !== null && progress.problem !== null && (
        <Fact term="not told" look="muted">
          by its workflow, which is over and does not answer: <Text value={progress.problem} max={300} />{' '}
          These facts are from the store.
        </Fact>
      )}
      <Fact term="stage">
        <Text value={stageText(now?.phase ?? null, now?.step ?? last ?? null, spec)} max={300} />
        {spec && ` (stages: ${spec.stages.map(({ name }) => name).join(', ')})`}
      </Fact>
      <Fact term="held-out success">{heldOut === null ? '–' : <Success of={total(heldOut.arms)} />}</Fact>
      {now?.before && (
        <Fact term="before → after">
          <Reported of={now.before} /> → {now.after ? <Reported of={now.after} /> : '…'}
        </Fact>
      )}
      {now?.checkpoint && (
        <Fact term={execution.value?.closedAt === null ? 'newest checkpoint' : 'final checkpoint'}>
          <code title={now.checkpoint.weights}>
            {now.checkpoint.step}-{now.checkpoint.weights.slice(0, 12)}
          </code>
          , of step {now.checkpoint.step}
        </Fact>
      )}
      <Fact term="sampled">
        <Num value={sampled} /> tokens for training
      </Fact>
      {equal !== null && (
        <Fact term="without contrast" look={equal.equal / equal.groups >= MOSTLY ? 'warn' : ''}>
          <Text value={equalGroupsText(equal)} max={300} />
        </Fact>
      )}
      {now && (
        <Fact term="time of its steps">
          {Object.entries(now.seconds)
            .filter(([, seconds]) => seconds > 0)
            .map(([part, seconds]) => `${part} ${duration(seconds)}`)
            .join(', ') || '–'}
        </Fact>
      )}
      {execution.value && (
        <Fact term="workflow">
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
        </Fact>
      )}
      {(now?.retrying.length ?? 0) > 0 && (
        <Fact term="tried again" warn>
          <ul>
            {now!.retrying.map(({ activity, workflow, attempts, lastFailure }) => (
              <li>
                {activity} of <Text value={workflow} max={200} />: attempt {attempts}; the last failed:{' '}
                <Text value={lastFailure} max={500} />
              </li>
            ))}
          </ul>
        </Fact>
      )}
      {(now?.changes?.length ?? 0) > 0 && (
        <Fact term="changed">
          <a href={`${runAt(view.run)}/spec`}>
            its limits, the newest change is number {now!.changes.at(-1)!.number}
          </a>
        </Fact>
      )}
      {(now?.unknownSignals.length ?? 0) > 0 && (
        <Fact term="ignored">
          <ul>
            {now!.unknownSignals.map((signal) => (
              <li>
                <Text value={signal} max={300} />
              </li>
            ))}
          </ul>
        </Fact>
      )}
    </dl>
  );
};
