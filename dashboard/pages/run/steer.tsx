import type { Context as Request } from 'hono';
import { DECISIONS } from '../../../core/question.ts';
import type { Decision } from '../../../core/question.ts';
import { GradusError } from '../../../core/errors.ts';
import type { RunObserver, RunView } from '../../../runs/overview/run.ts';
import { answered } from '../../../runs/control/answered.ts';
import { answerQuestion, signalRun } from '../../../runs/control/control.ts';
import { runAt } from '../../address.ts';
import { askedQuery, untilDone } from '../../asked.ts';
import type { SteerRequest } from '../../asked.ts';
import type { App, Context } from '../../context.ts';
import { Layout } from '../../layout.tsx';
import { ActionButton } from '../../parts/action.tsx';

/** Nobody waits longer for a page, whether or not a run answers. */
const ANSWERS_WITHIN_MS = 8000;
/** And so long until the run says that it is as it was asked to be. */
const SHOWN_WITHIN_MS = 3000;
const SIGNALS = ['pause', 'resume', 'stop'] as const;

/** What is done to a run from its page: pause, resume, stop, and the answer to its question. */
export function steerPages(app: App, context: Context & { observer: RunObserver }): void {
  const { observer, sources } = context;
  const look = (c: Request): Promise<RunView> => observer.look(c.req.param('run')!);

  const steer = (view: RunView, operation: (workflowId: string) => Promise<unknown>): Promise<unknown> => {
    const id = workflowOf(view);
    return answered(sources.temporal, id, () => operation(id), ANSWERS_WITHIN_MS);
  };

  /** Asks back: what is stopped does not go on. */
  app.get('/runs/:run/stop', async (c) => {
    const view = await look(c);
    const { run } = view;
    workflowOf(view);
    return c.html(
      <Layout title={`Stop ${run}?`} crumbs={[{ href: runAt(run), label: run }]}>
        <p>The run ends after the step in flight, with its checkpoint. It cannot be continued.</p>
        {context.actions ? (
          <ActionButton to={`${runAt(run)}/stop`} token={context.formToken} label="Stop the run" danger />
        ) : (
          <p class="note">This dashboard is read-only: it was started without --actions.</p>
        )}
        <p>
          <a href={runAt(run)}>Let it go on</a>
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
  async function shown(c: Request, run: string, asked: SteerRequest): Promise<Response> {
    const done = await untilDone(observer, run, asked, SHOWN_WITHIN_MS);
    return c.redirect(`${runAt(run)}${done ? '' : askedQuery(asked)}`, 303);
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

/** What does something to a run as it stands; of one that does not say how it stands, either may. */
export function signalsFor({ progress }: Pick<RunView, 'progress'>): ('pause' | 'resume')[] {
  if (progress.value === null || progress.problem !== null) return ['pause', 'resume'];
  const { status } = progress.value;
  if (status === 'paused') return ['resume'];
  return status === 'stopping' ? [] : ['pause'];
}
