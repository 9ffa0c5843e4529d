import type { Context as Request } from 'hono';
import type { FC } from 'hono/jsx';
import { DECISIONS } from '../../core/question.ts';
import type { Decision, OpenQuestion } from '../../core/question.ts';
import { GradusError, messageOf } from '../../core/errors.ts';
import { noOutcomes } from '../../core/episode/outcome.ts';
import type { OutcomeKind } from '../../core/episode/outcome.ts';
import { alarmText } from '../../core/diagnosis/alarm.ts';
import { sampledToLearn } from '../../core/training/figures.ts';
import { learnability } from '../../core/training/task-draw.ts';
import { total } from '../../core/training/stage-policy.ts';
import { countOpenReviews } from '../../runs/ladder/reviews.ts';
import {
  belowGoal,
  equalGroupsLately,
  equalGroupsText,
  standingAlarms,
} from '../../runs/overview/concerns.ts';
import type { Concern } from '../../runs/overview/concerns.ts';
import { statusOf } from '../../runs/overview/runs.ts';
import { stageText } from '../../runs/overview/stage-at.ts';
import type { RunObserver, RunView } from '../../runs/overview/run.ts';
import type { Sources } from '../../runs/sources.ts';
import { whyInWords } from '../../runs/overview/why-in-words.ts';
import { whyOf } from '../../runs/overview/why.ts';
import { answered } from '../../runs/control/answered.ts';
import { answerQuestion, signalRun } from '../../runs/control/control.ts';
import type { StoredStep } from '../../store/training/step-facts.ts';
import { reviewsOf, runAt, stepAt } from '../address.ts';
import { askedIn, askedQuery, askedText, isDone, untilDone } from '../asked.ts';
import type { Asked } from '../asked.ts';
import type { App, Context } from '../context.ts';
import { Layout, Live } from '../layout.tsx';
import { Action } from '../parts/action.tsx';
import { Curves } from '../parts/chart.tsx';
import { percent } from '../../core/percent.ts';
import { amount, duration, Num, Reported, Success, Time } from '../parts/numbers.tsx';
import { staleOf } from '../parts/stale.ts';
import { Status } from '../parts/status.tsx';
import { Text } from '../parts/text.tsx';
import { Unreadable } from '../parts/unreadable.tsx';
import { chartsOf } from '../run-charts.ts';
import type { RunChart } from '../run-charts.ts';
import { Scroll } from '../parts/scroll.tsx';

/** Nobody waits longer for a page, whether or not a run answers. */
const ANSWERS_WITHIN_MS = 8000;
/** And so long until the run says that it is as it was asked to be. */
const SHOWN_WITHIN_MS = 3000;
/** Of what has happened that is seen at once, and behind it. */
const MOST_NOTABLE = 6;
const MOST_BEFORE = 500;
const SIGNALS = ['pause', 'resume', 'stop'] as const;

/** `/runs/RUN`: how a run stands, what it asks, and how it got there. */
export function runPage(app: App, context: Context & { observer: RunObserver }): void {
  const { observer, sources } = context;
  const look = (c: Request): Promise<RunView> => observer.look(c.req.param('run')!);

  const steer = (view: RunView, operation: (workflowId: string) => Promise<unknown>): Promise<unknown> => {
    const id = workflowOf(view);
    return answered(sources.temporal, id, () => operation(id), ANSWERS_WITHIN_MS);
  };

  app.get('/runs/:run', async (c) => {
    const view = await look(c);
    const asked = askedIn(c.req.query('asked'), c.req.query('question'));
    const pending = asked !== null && !isDone(asked, view) ? asked : null;
    const why = await waitingFor(sources, view);
    const isOver = view.execution.value !== null && view.execution.value.closedAt !== null;
    // Only a ladder asks people.
    const asksPeople = isOver || view.spec?.verification !== undefined;
    const reviews = asksPeople ? await countOpenReviews(sources.temporal, view.run) : null;
    return c.html(<Page view={view} why={why} context={context} pending={pending} reviews={reviews ?? 0} />);
  });

  /** Asks back: what is stopped does not go on. */
  app.get('/runs/:run/stop', async (c) => {
    const view = await look(c);
    const { run } = view;
    workflowOf(view);
    return c.html(
      <Layout title={`Stop ${run}?`} crumbs={[{ href: runAt(run), label: run }]}>
        <p>The run ends after the step in flight, with its checkpoint. It cannot be gone on with.</p>
        {context.actions ? (
          <Action to={`${runAt(run)}/stop`} token={context.formToken} label="Stop the run" danger />
        ) : (
          <p class="note">This dashboard only shows: it was started without --actions.</p>
        )}
        <p>
          <a href={runAt(run)}>Leave it going</a>
        </p>
      </Layout>,
    );
  });

  for (const signal of SIGNALS) {
    app.post(`/runs/:run/${signal}`, async (c) => {
      const view = await look(c);
      await steer(view, (id) => signalRun(sources.temporal, id, signal));
      return shown(c, view.run, { kind: signal });
    });
  }

  app.post('/runs/:run/decide', async (c) => {
    const view = await look(c);
    const { answer, question } = await c.req.parseBody();
    if (typeof question !== 'string' || !isDecision(answer)) {
      throw new GradusError(
        'spec',
        'answer',
        `an answer is one of ${DECISIONS.join(', ')}, with the id of its question`,
      );
    }
    await steer(view, (id) => answerQuestion(sources.temporal, id, answer, question));
    return shown(c, view.run, { kind: 'answer', question });
  });

  /** The page of the run as it is after what was asked; where that takes longer it says so. */
  async function shown(c: Request, run: string, asked: Asked): Promise<Response> {
    const done = await untilDone(observer, run, asked, SHOWN_WITHIN_MS);
    return c.redirect(`${runAt(run)}${done ? '' : askedQuery(asked)}`, 303);
  }
}

/** What a run that goes on is at, in sentences; null of one that does not, or where Temporal does not say. */
async function waitingFor(sources: Sources, { execution }: RunView): Promise<string[] | null> {
  if (execution.value?.closedAt !== null || execution.problem !== null) return null;
  try {
    const { reasons, problems } = await whyOf(sources, execution.value.workflowId);
    const now = Date.now();
    return [...reasons.map((reason) => whyInWords(reason, now)), ...problems];
  } catch (error) {
    return [messageOf(error)];
  }
}

const isDecision = (value: unknown): value is Decision => (DECISIONS as readonly unknown[]).includes(value);

/** Throws GradusError('infra', 'not-running'). */
function workflowOf({ run, execution }: RunView): string {
  if (execution.value?.closedAt === null) return execution.value.workflowId;
  throw new GradusError(
    'infra',
    'not-running',
    execution.problem ?? `${run} does not go on any more: there is nothing to steer`,
  );
}

interface PageProps {
  view: RunView;
  why: string[] | null;
  context: Context;
  /** What was asked of the run and has not come about. */
  pending: Asked | null;
  /** Open reviews that it has asked for. */
  reviews: number;
}

const Page: FC<PageProps> = ({ view, why, context, pending, reviews }) => {
  const { run, progress, execution, spec } = view;
  const steps = view.steps.value ?? [];
  const last = steps.at(-1);
  return (
    <Layout
      title={run}
      crumbs={[{ href: '/', label: 'Runs' }]}
      stale={staleOf(view)}
      live={execution.value?.closedAt === null || execution.problem !== null}
    >
      <Live id="unreadable">
        <Unreadable of={view.unreadable} />
      </Live>
      <Live id="asked">
        {pending !== null && (
          <p class="warning" role="status">
            {askedText(pending)}
          </p>
        )}
      </Live>
      <Live id="question">
        {progress.value?.question && (
          <QuestionOf run={run} question={progress.value.question} context={context} />
        )}
      </Live>
      <Live id="standing">
        <Standing view={view} last={last} context={context} />
        {why !== null && why.length > 0 && (
          <>
            <h2>What it is at</h2>
            <ul>
              {why.map((sentence) => (
                <li>
                  <Text value={sentence} max={700} />
                </li>
              ))}
            </ul>
          </>
        )}
      </Live>
      <Live id="reviews">
        {reviews > 0 && execution.value?.closedAt === null && (
          <p>
            {amount(reviews, 'review')} that it asked people for {reviews === 1 ? 'is' : 'are'} open:{' '}
            <a href={reviewsOf(run)}>look at {reviews === 1 ? 'it' : 'them'}</a>
          </p>
        )}
        {reviews > 0 && execution.value?.closedAt !== null && (
          <p class="warning">
            {amount(reviews, 'review')} that this run asked for {reviews === 1 ? 'is' : 'are'} still open,
            though it is over: verdicts are kept for other runs, and change nothing in this one.{' '}
            <a href={reviewsOf(run)}>
              Look at {reviews === 1 ? 'it' : 'them'}, or close {reviews === 1 ? 'it' : 'them'}
            </a>
          </p>
        )}
      </Live>
      <Live id="actions">
        {context.actions && execution.value?.closedAt === null && (
          <div class="actions">
            {signalsFor(view).map((signal) => (
              <Action
                to={`${runAt(run)}/${signal}`}
                token={context.formToken}
                label={signal === 'pause' ? 'Pause' : 'Resume'}
              />
            ))}
            <a href={`${runAt(run)}/stop`}>Stop …</a>
          </div>
        )}
      </Live>
      <nav aria-label="Of this run">
        <a href={`/find?run=${encodeURIComponent(run)}`}>Find episodes</a>
        {spec?.verification && (
          <>
            {' · '}
            <a href={`${runAt(run)}/ladder`}>Verification ladder</a>
          </>
        )}
        {' · '}
        <a href={`${runAt(run)}/checkpoints`}>Checkpoints</a>
        {spec && (
          <>
            {' · '}
            <a href={`${runAt(run)}/spec`}>Spec</a>
          </>
        )}
        {' · '}
        <a href={`/compare?runs=${encodeURIComponent(run)}`}>Compare</a>
      </nav>
      <h2>Charts</h2>
      <p class="note">
        By the step of the run. Shaded stretches are stages, diamonds decisions, triangles alarms; lines are
        dashed alike in chart and legend. Success has its 95 % interval (Wilson).
      </p>
      <Live id="charts">
        <Charts charts={chartsOf(steps)} />
      </Live>
      <Live id="happened">
        <Happened run={run} steps={steps} />
      </Live>
      <Live id="outcomes">
        <Outcomes steps={steps} />
      </Live>
      <Live id="arms">{last && Object.keys(last.estimates).length > 0 && <Arms step={last} />}</Live>
      <Live id="steps">
        <Steps run={run} steps={steps} />
      </Live>
    </Layout>
  );
};

/** What does something to a run as it stands; of one that does not say how it stands, either may. */
export function signalsFor({ progress }: Pick<RunView, 'progress'>): ('pause' | 'resume')[] {
  if (progress.value === null || progress.problem !== null) return ['pause', 'resume'];
  const { status } = progress.value;
  if (status === 'paused') return ['resume'];
  return status === 'stopping' ? [] : ['pause'];
}

const QuestionOf: FC<{ run: string; question: OpenQuestion; context: Context }> = ({
  run,
  question,
  context,
}) => (
  <section class="question" aria-labelledby="asked">
    <h2 id="asked">This run waits for an answer</h2>
    <p>
      <Text value={question.reason} />
    </p>
    {question.answers.map(({ answer, effect }) =>
      context.actions ? (
        <div class="answer">
          {answer === 'stop' ? (
            // It asks back, as whenever a run is stopped.
            <a href={`${runAt(run)}/stop`}>stop …</a>
          ) : (
            <Action to={`${runAt(run)}/decide`} token={context.formToken} label={answer}>
              <input type="hidden" name="question" value={question.id} />
              <input type="hidden" name="answer" value={answer} />
            </Action>
          )}
          <span>
            <Text value={effect} />
          </span>
        </div>
      ) : (
        <p>
          <code>{answer}</code>: <Text value={effect} />
        </p>
      ),
    )}
  </section>
);

/** What the run itself says, or what its steps and Temporal say of it. */
function standingOf({ progress, execution, steps }: RunView): string {
  if (progress.value) return progress.value.status;
  if (execution.value) return statusOf(execution.value);
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

const Standing: FC<{ view: RunView; last: StoredStep | undefined; context: Context }> = ({
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
            What is here is from the store.
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
        <Num value={sampled} /> tokens to learn from
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

/** Those that have something to show; of a run that has just begun, or that only imitates, many have not. */
const Charts: FC<{ charts: readonly RunChart[] }> = ({ charts }) => {
  const isEmpty = ({ chart: { series } }: RunChart): boolean =>
    series.every(({ points }) => points.every(([, y]) => y === null));
  const empty = charts.filter(isEmpty);
  return (
    <>
      <div class="figures">
        {charts
          .filter((one) => !isEmpty(one))
          .map(({ heading, chart }) => (
            <Curves heading={heading} chart={chart} />
          ))}
      </div>
      {empty.length > 0 && (
        <p class="note">No step has figures of: {empty.map(({ heading }) => heading).join('; ')}.</p>
      )}
    </>
  );
};

/** Decisions, questions with their answers, and alarms, the newest first. */
const Happened: FC<{ run: string; steps: readonly StoredStep[] }> = ({ run, steps }) => {
  const notable = steps.filter(({ alarms, decision }) => alarms.length > 0 || decision.kind !== 'continue');
  const before = notable.slice(0, -MOST_NOTABLE);
  if (notable.length === 0) return null;
  return (
    <>
      <h2>Decisions and alarms</h2>
      <HappenedIn run={run} steps={notable.slice(-MOST_NOTABLE).toReversed()} />
      {notable.length > MOST_NOTABLE && (
        <details>
          <summary>What happened before</summary>
          {before.length > MOST_BEFORE && (
            <p>
              The last {MOST_BEFORE} of {before.length} steps.
            </p>
          )}
          <HappenedIn run={run} steps={before.slice(-MOST_BEFORE).toReversed()} />
        </details>
      )}
    </>
  );
};

const HappenedIn: FC<{ run: string; steps: readonly StoredStep[] }> = ({ run, steps }) => (
  <ul class="events">
    {steps.map((step) => (
      <li>
        <a href={stepAt({ run, stage: step.stage, step: step.stageStep })}>
          {step.stage} {step.stageStep}
        </a>
        {step.decision.kind !== 'continue' && (
          <>
            {': '}
            <strong>{step.decision.kind}</strong> <Text value={step.decision.reason ?? ''} max={500} />
            {step.decision.question &&
              (step.answer === null
                ? ' – a person is asked'
                : ` – a person was asked, and answered ${step.answer}`)}
          </>
        )}
        {step.alarms.map(({ actions, ...alarm }) => (
          <div>
            <strong class="bad">alarm</strong> <Text value={alarmText(alarm)} max={2000} />
            {actions.length > 0 && ` Done: ${actions.join(', ')}.`}
          </div>
        ))}
      </li>
    ))}
  </ul>
);

const Outcomes: FC<{ steps: readonly StoredStep[] }> = ({ steps }) => {
  const sums = noOutcomes();
  const last = steps.findLast(({ rollout }) => rollout !== null)?.rollout?.outcomes;
  const failures: Record<string, number> = {};
  for (const { rollout } of steps) {
    for (const [kind, count] of Object.entries(rollout?.outcomes ?? {})) sums[kind as OutcomeKind] += count;
    for (const [boundary, count] of Object.entries(rollout?.failures ?? {})) {
      failures[boundary] = (failures[boundary] ?? 0) + count;
    }
  }
  const all = Object.values(sums).reduce((sum, count) => sum + count, 0);
  if (all === 0) return null;
  return (
    <>
      <h2>Outcomes</h2>
      <Scroll>
        <table>
          <caption>Episodes that were rolled out to learn from</caption>
          <thead>
            <tr>
              <th scope="col">outcome</th>
              <th scope="col" class="number">
                last step
              </th>
              <th scope="col" class="number">
                whole run
              </th>
              <th scope="col" class="number">
                share
              </th>
            </tr>
          </thead>
          <tbody>
            {Object.entries(sums).map(([kind, count]) => (
              <tr>
                <th scope="row">{kind}</th>
                <td class="number">{last?.[kind as OutcomeKind] ?? 0}</td>
                <td class="number">{count}</td>
                <td class="number">{percent(count / all)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
      {Object.keys(failures).length > 0 && (
        <p class="note">
          Failed by where:{' '}
          {Object.entries(failures)
            .map(([boundary, count]) => `${boundary} ${count}`)
            .join(', ')}
        </p>
      )}
    </>
  );
};

const Arms: FC<{ step: StoredStep }> = ({ step }) => (
  <>
    <h2>Arms</h2>
    <Scroll>
      <table>
        <caption>
          What stage {step.stage} believes of each environment and level, by which it draws tasks
        </caption>
        <thead>
          <tr>
            <th scope="col">arm</th>
            <th scope="col" class="number">
              success p
            </th>
            <th scope="col" class="number">
              trials, decayed
            </th>
            <th scope="col" class="number">
              p(1 − p)
            </th>
          </tr>
        </thead>
        <tbody>
          {Object.entries(step.estimates).map(([name, estimate]) => {
            const p = (estimate.successes + 1) / (estimate.trials + 2);
            return (
              <tr>
                <th scope="row">
                  <Text value={name} max={100} />
                </th>
                <td class="number">{percent(p)}</td>
                <td class="number">{estimate.trials.toFixed(1)}</td>
                <td class="number" title={`weight ${learnability(estimate).toFixed(3)}`}>
                  {(p * (1 - p)).toFixed(3)}
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </Scroll>
  </>
);

/** Steps that a page lists before it is asked for all. */
const LISTED = 30;

const Steps: FC<{ run: string; steps: readonly StoredStep[] }> = ({ run, steps }) => {
  const listed = steps.slice(-LISTED).toReversed();
  if (listed.length === 0) return <p>No step has ended yet.</p>;
  return (
    <>
      <h2>Steps and their checkpoints</h2>
      <Scroll>
        <table>
          <caption>
            The newest {listed.length} of {steps.length}. A checkpoint comes from that of the step before, or
            from the one that a decision went back to.
          </caption>
          <thead>
            <tr>
              <th scope="col">step</th>
              <th scope="col" class="number">
                reward
              </th>
              <th scope="col">held-out</th>
              <th scope="col" class="number">
                sampled
              </th>
              <th scope="col" class="number">
                seconds
              </th>
              <th scope="col">checkpoint</th>
              <th scope="col">decision</th>
            </tr>
          </thead>
          <tbody>
            {listed.map((step) => (
              <tr data-item>
                <th scope="row">
                  <a href={stepAt({ run, stage: step.stage, step: step.stageStep })}>
                    {step.stage} {step.stageStep}
                  </a>
                </th>
                <td class="number">
                  <Num
                    value={
                      step.rollout?.rewardCount ? step.rollout.rewardSum / step.rollout.rewardCount : null
                    }
                  />
                </td>
                <td>{step.heldOut ? <Success of={total(step.heldOut.arms)} /> : '–'}</td>
                <td class="number">
                  <Num value={step.rollout && sampledToLearn(step)} />
                </td>
                <td class="number">
                  <Num
                    value={Object.values(step.circumstances.seconds).reduce((sum, part) => sum + part, 0)}
                  />
                </td>
                <td>
                  <code title={step.checkpoint.weights}>
                    {step.checkpoint.step}-{step.checkpoint.weights.slice(0, 12)}
                  </code>
                </td>
                <td>{step.decision.kind === 'continue' ? '' : step.decision.kind}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </>
  );
};
