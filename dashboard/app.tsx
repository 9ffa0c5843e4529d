import { Hono } from 'hono';
import type { Context as Request } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { GradusError, messageOf } from '../core/errors.ts';
import { serveAssets } from './assets.ts';
import type { App, Context } from './context.ts';
import { Layout } from './layout.tsx';
import { serveLive } from './live.ts';
import { LadderObserver } from '../runs/ladder/ladder.ts';
import { patiently } from './patience.ts';
import { RunObserver } from '../runs/overview/run.ts';
import { TokenizersOfRuns } from '../runs/episodes/token-texts.ts';
import { checkpointsPage } from './pages/checkpoints.tsx';
import { episodePage } from './pages/episode.tsx';
import { findPage } from './pages/find.tsx';
import { groupPage } from './pages/group.tsx';
import { metricsPage } from './pages/metrics.ts';
import { operationsPage } from './pages/operations.tsx';
import { candidatePage } from './pages/candidate.tsx';
import { drawingsPage } from './pages/drawings.ts';
import { ladderPage } from './pages/ladder.tsx';
import { reviewsPage } from './pages/reviews.tsx';
import { replayPage } from './pages/replay.tsx';
import { comparePage } from './pages/compare.tsx';
import { reweighPage } from './pages/reweigh.tsx';
import { runPage } from './pages/run.tsx';
import { runsPage } from './pages/runs.tsx';
import { stepPage } from './pages/step.tsx';
import { timelinePage } from './pages/timeline.tsx';
import { Text } from './parts/text.tsx';
import { admission, changes, headers, plainPages } from './security.ts';
import type { Access } from './security.ts';

/** A form is a few fields and a comment. */
const MOST_BYTES = 64 * 1024;

/** The dashboard as a function from requests to answers, whatever serves it. */
export function createApp(context: Context, access: Access): App {
  const app = new Hono();
  app.use(headers);
  app.use(plainPages);
  app.use(admission(access));
  app.use(
    bodyLimit({
      maxSize: MOST_BYTES,
      onError: (c) => c.text(`A form has ${MOST_BYTES} bytes at most.\n`, 413),
    }),
  );
  app.use(changes(context));
  app.use(
    patiently(app, (c, seconds) =>
      notNow(c, {
        title: 'This page is still loading',
        problem: `It is not ready after ${seconds} s: the store or Temporal is slow, or the page reads a lot. It is still being made, and is shown here as soon as it is ready.`,
        again: STILL_MADE_SECONDS,
      }),
    ),
  );
  app.onError((error, c) => {
    const status = statusOf(error);
    if (status === 500) console.error(error);
    const problem = withoutSecrets(messageOf(error), context.secrets);
    if (status === 503) return notNow(c, { title: TITLES[503], problem, again: AWAY_SECONDS });
    return c.html(
      <Layout title={TITLES[status]}>
        <p>
          <Text value={problem} />
        </p>
      </Layout>,
      status,
    );
  });
  app.notFound((c) =>
    c.html(
      <Layout title={TITLES[404]}>
        <p>
          There is no page at <Text value={c.req.path} max={300} />.
        </p>
      </Layout>,
      404,
    ),
  );
  serveAssets(app);
  runsPage(app, context);
  const shared = {
    ...context,
    observer: new RunObserver(context.sources),
    tokenizers: new TokenizersOfRuns(context.sources.store),
  };
  runPage(app, shared);
  checkpointsPage(app, context);
  stepPage(app, shared);
  reweighPage(app, context);
  comparePage(app, context);
  groupPage(app, shared);
  episodePage(app, shared);
  replayPage(app, context);
  timelinePage(app, context);
  operationsPage(app, context);
  const ladder = new LadderObserver(context.sources);
  ladderPage(app, { ...context, ladder });
  candidatePage(app, { ...context, ladder });
  reviewsPage(app, context);
  drawingsPage(app, context);
  metricsPage(app, context);
  findPage(app, context);
  serveLive(app);
  return app;
}

/** After this time the browser asks again for a page that something is away for, or that is being made. */
const AWAY_SECONDS = 5;
const STILL_MADE_SECONDS = 2;

/** What cannot be shown just now: a page is asked for again by itself, and what was sent leads back to where it was sent from. */
function notNow(
  c: Request,
  { title, problem, again }: { title: string; problem: string; again: number },
): Response | Promise<Response> {
  const isPage = c.req.method === 'GET';
  if (isPage) c.header('Retry-After', String(again));
  const back = isPage ? null : sentFrom(c);
  return c.html(
    <Layout title={title} problem={problem} again={isPage ? again : null}>
      <p>
        {isPage
          ? `The browser requests this page again every ${again} s, by itself.`
          : 'Your change may still be made. Look before you repeat it.'}
        {back !== null && (
          <>
            {' '}
            <a href={back}>Back to the page before</a>
          </>
        )}
      </p>
    </Layout>,
    503,
  );
}

/** Our own page that a form was on; null where it was none. */
function sentFrom(c: Request): string | null {
  const referer = c.req.header('referer');
  if (referer === undefined || !URL.canParse(referer)) return null;
  const { host, pathname, search } = new URL(referer);
  return host === c.req.header('host') ? pathname + search : null;
}

const TITLES = {
  400: 'This request is not valid',
  404: 'Not here',
  409: 'That was refused',
  500: 'This page could not be made',
  503: 'A server that this page needs is unavailable',
} as const;

/** What the person who asked can do about it decides, not where it was thrown. */
function statusOf(error: unknown): keyof typeof TITLES {
  if (!(error instanceof GradusError)) return 500;
  if (error.retryable) return 503;
  if (/^no-|missing/.test(error.type)) return 404;
  if (error.type === 'refused' || error.type === 'over') return 409;
  return error.boundary === 'spec' || error.type.startsWith('invalid') ? 400 : 409;
}

const withoutSecrets = (text: string, secrets: readonly string[]): string =>
  secrets.reduce((rest, secret) => (secret === '' ? rest : rest.replaceAll(secret, '…')), text);
