import type { FC } from 'hono/jsx';
import { messageOf } from '../../core/errors.ts';
import { countOpenReviews } from '../../runs/ladder/reviews.ts';
import type { RunObserver, RunView } from '../../runs/overview/run.ts';
import type { Sources } from '../../runs/sources.ts';
import { whyInWords } from '../../runs/overview/why-in-words.ts';
import { whyOf } from '../../runs/overview/why.ts';
import { reviewsOf, runAt } from '../address.ts';
import { steerRequestIn, askedText, isDone } from '../asked.ts';
import type { SteerRequest } from '../asked.ts';
import type { App, Context } from '../context.ts';
import { Layout, Live } from '../layout.tsx';
import { ActionButton } from '../parts/action.tsx';
import { amountText } from '../parts/numbers.tsx';
import { staleOf } from '../parts/stale.ts';
import { Text } from '../parts/text.tsx';
import { Unreadable } from '../parts/unreadable.tsx';
import { chartsOf } from '../run-charts.ts';
import { signalsFor, steerPages } from './run/steer.tsx';
import { QuestionOf } from './run/question.tsx';
import { RunStanding } from './run/standing.tsx';
import { RunCharts } from './run/charts.tsx';
import { Happened } from './run/happened.tsx';
import { TasksFromFailures } from './run/failures.tsx';
import { Synthesis } from './run/synthesis.tsx';
import { Outcomes } from './run/outcomes.tsx';
import { Arms } from './run/arms.tsx';
import { Steps } from './run/steps.tsx';

/** `/runs/RUN`: how a run stands, what it asks, and how it got there. */
export function runPage(app: App, context: Context & { observer: RunObserver }): void {
  const { observer, sources } = context;

  app.get('/runs/:run', async (c) => {
    const view = await observer.look(c.req.param('run'));
    const asked = steerRequestIn(c.req.query('asked'), c.req.query('question'));
    const pending = asked !== null && !isDone(asked, view) ? asked : null;
    const isOver = view.execution.value !== null && view.execution.value.closedAt !== null;
    // Only a ladder asks people.
    const asksPeople = isOver || view.spec?.verification !== undefined;
    const isAway = view.execution.problem !== null;
    const [why, reviews] = await Promise.all([
      waitingFor(sources, view),
      asksPeople && !isAway ? countOpenReviews(sources.temporal, view.run) : null,
    ]);
    return c.html(<Page view={view} why={why} context={context} pending={pending} reviews={reviews ?? 0} />);
  });
  steerPages(app, context);
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

interface PageProps {
  view: RunView;
  why: string[] | null;
  context: Context;
  /** What was asked of the run and has not come about. */
  pending: SteerRequest | null;
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
      live={execution.value?.closedAt === null || execution.problem !== null || progress.problem !== null}
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
        <RunStanding view={view} last={last} context={context} />
        {why !== null && why.length > 0 && (
          <>
            <h2>What it is doing</h2>
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
            {amountText(reviews, 'review')} that it asked people for {reviews === 1 ? 'is' : 'are'} open:{' '}
            <a href={reviewsOf(run)}>look at {reviews === 1 ? 'it' : 'them'}</a>
          </p>
        )}
        {reviews > 0 && execution.value?.closedAt !== null && (
          <p class="warning">
            {amountText(reviews, 'review')} that this run asked for {reviews === 1 ? 'is' : 'are'} still open,
            though it is over: verdicts are stored for other runs, and change nothing in this one.{' '}
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
              <ActionButton
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
        <RunCharts charts={chartsOf(steps)} />
      </Live>
      <Live id="happened">
        <Happened run={run} steps={steps} />
      </Live>
      <Live id="outcomes">
        <Outcomes steps={steps} />
        <TasksFromFailures steps={steps} />
        <Synthesis steps={steps} />
      </Live>
      <Live id="arms">{last && Object.keys(last.estimates).length > 0 && <Arms step={last} />}</Live>
      <Live id="steps">
        <Steps run={run} steps={steps} />
      </Live>
    </Layout>
  );
};
