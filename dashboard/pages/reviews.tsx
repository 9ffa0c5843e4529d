import type { Context as Request } from 'hono';
import { GradusError, isA } from '../../core/errors.ts';
import type { Opinion, Withdrawal } from '../../core/ladder/opinions.ts';
import { isForOthers, openReviews, readReviewState } from '../../runs/ladder/reviews.ts';
import type { OpenReview, OpenReviews } from '../../runs/ladder/reviews.ts';
import { whyAway } from '../../runs/temporal/temporal-away.ts';
import { closeReviewsOf } from '../../runs/control/close-reviews.ts';
import { showReview, submitOpinion, withdrawOpinion } from '../../runs/control/review.ts';
import type { ReviewState } from '../../workflows/ladder/review-state.ts';
import { closeAllAt, drawingAt, reviewAt, reviewsOf } from '../address.ts';
import type { App, Context } from '../context.ts';
import { Layout, Live } from '../layout.tsx';
import type { ThumbnailsBySubject } from './reviews/inbox.tsx';
import type { FailedReview } from './reviews/review.tsx';
import { opinionIn, withdrawalIn } from './reviews/form.ts';
import { Inbox } from './reviews/inbox.tsx';
import { RunLink } from './reviews/parts.tsx';
import { Closing } from './reviews/closing.tsx';
import { Review } from './reviews/review.tsx';

/** How long a page waits for a review. */
const PATIENCE_MS = 5000;
/** Reviews of the inbox whose subjects are drawn, and how long that may take, milliseconds. */
const MOST_DRAWN = 30;
const DRAWN_WITHIN_MS = 700;

/** `/reviews`: what people are asked, those with the nearest deadline first, and `/reviews/ID`, where they answer. */
export function reviewsPage(app: App, context: Context): void {
  const { sources, presenter, actions } = context;
  const { temporal } = sources;
  /** For when Temporal is away. */
  let last: (OpenReviews & { asOf: number }) | null = null;

  app.get('/reviews', async (c) => {
    let problem: string | null = null;
    try {
      last = { ...(await openReviews(temporal)), asOf: Date.now() };
    } catch (error) {
      problem = whyAway(temporal, error);
    }
    const run = c.req.query('run') || null;
    const reviews = (last?.reviews ?? []).filter((one) => run === null || one.run === run);
    const drawn = await drawingsOf(reviews);
    const stale = problem === null ? [] : [{ source: 'Temporal', problem, asOf: last?.asOf ?? null }];
    return c.html(
      <Layout title="Reviews" live stale={stale}>
        {run !== null && (
          <p>
            Those that <RunLink run={run} /> asked for. <a href="/reviews">All of them</a>
          </p>
        )}
        <Live id="reviews">
          {last && <Inbox reviews={reviews} more={last.more} drawn={drawn} />}
          {actions && run !== null && reviews.some(({ runOver }) => runOver) && (
            <p>
              <a href={closeAllAt(run)}>Close those that nothing waits for …</a>
            </p>
          )}
        </Live>
      </Layout>,
    );
  });

  /** Asks back, too. */
  app.get('/reviews-of/:run/close', (c) => {
    const run = c.req.param('run');
    return c.html(
      <Layout title={`Close the reviews of ${run}?`} crumbs={crumbsOf(null)}>
        <p>
          The run is over. Its open reviews end without a verdict; those for which another run or a sweep
          waits stay open.
        </p>
        <Closing
          context={context}
          to={closeAllAt(run)}
          label="Close the reviews"
          who="Who closes them"
          open={{ at: reviewsOf(run), label: 'Leave them open' }}
        />
      </Layout>,
    );
  });

  app.post('/reviews-of/:run/close', async (c) => {
    const run = c.req.param('run');
    const by = withdrawalIn(await c.req.parseBody());
    if (by.reviewer === '') throw new GradusError('spec', 'invalid-form', 'reviewer: name who closes them');
    const { closed, left } = await closeReviewsOf(temporal, run, by, { patienceMs: PATIENCE_MS });
    if (left.length === 0) return c.redirect(reviewsOf(run), 303);
    throw new GradusError(
      'verifier',
      'review',
      `${closed.length} are closed, and ${left.length} are not; the first of them, ${left[0]!.id}: ${left[0]!.why}`,
    );
  });

  /** Of the first ones, what is drawn of their subjects: nobody waits for an environment that takes long. */
  async function drawingsOf(reviews: readonly OpenReview[]): Promise<ThumbnailsBySubject> {
    const drawn: ThumbnailsBySubject = new Map();
    await Promise.all(
      reviews.slice(0, MOST_DRAWN).map(async ({ id, state }) => {
        if (state === null) return;
        const { environment, request } = state.ask;
        const shown = await presenter.presentSoon(environment, request.subject, DRAWN_WITHIN_MS);
        const at = shown?.blocks.findIndex(({ kind }) => kind === 'svg') ?? -1;
        const block = shown?.blocks[at];
        if (block?.kind === 'svg') drawn.set(id, { src: drawingAt(shown!.key, at), alt: block.alt });
      }),
    );
    return drawn;
  }

  app.get('/reviews/:id', async (c) => c.html(await page(c.req.param('id'))));

  app.post('/reviews/:id/submit', async (c) => {
    const id = c.req.param('id');
    const form = await c.req.parseBody();
    const opinion = opinionIn(form);
    return change(c, id, opinion, () => submitOpinion(temporal, id, opinion, { patienceMs: PATIENCE_MS }));
  });

  /** Asks back: what is closed is not asked about again in this run. */
  app.get('/reviews/:id/close', async (c) => {
    const id = c.req.param('id');
    await stateOf(id);
    return c.html(
      <Layout title="Close this review?" crumbs={crumbsOf(id)}>
        <p>
          It ends without a verdict, whatever opinions there are, and counts as an abstention for those who
          wait for it. Another run, or a sweep, may ask again.
        </p>
        <Closing
          context={context}
          to={`${reviewAt(id)}/withdraw`}
          label="Close the review"
          who="Who closes it"
          open={{ at: reviewAt(id), label: 'Leave it open' }}
        >
          <input type="hidden" name="all" value="true" />
        </Closing>
      </Layout>,
    );
  });

  app.post('/reviews/:id/withdraw', async (c) => {
    const id = c.req.param('id');
    const form = await c.req.parseBody();
    const withdrawal: Withdrawal = {
      ...withdrawalIn(form),
      ...(form['all'] === 'true' && { all: true }),
    };
    return change(c, id, null, () => withdrawOpinion(temporal, id, withdrawal, { patienceMs: PATIENCE_MS }));
  });

  /** Back to the review; where it refuses, with why, and with what was typed. */
  async function change(
    c: Request,
    id: string,
    typed: Opinion | null,
    act: () => Promise<unknown>,
  ): Promise<Response> {
    assertReview(id);
    try {
      await act();
    } catch (error) {
      if (!isA(error, GradusError) || error.type !== 'review') throw error;
      return c.html(await page(id, { problem: error.message, typed }), 409);
    }
    return c.redirect(reviewAt(id), 303);
  }

  async function stateOf(id: string): Promise<ReviewState> {
    assertReview(id);
    const state = readReviewState(await showReview(temporal, id, { patienceMs: PATIENCE_MS }));
    if (state !== null) return state;
    throw new GradusError('verifier', 'no-review', `"${id}" is a workflow, and no review`);
  }

  async function page(id: string, failed: FailedReview | null = null) {
    const state = await stateOf(id);
    const { environment, request } = state.ask;
    const [presentation, forOthers] = await Promise.all([
      presenter.present(environment, request.subject),
      state.verdict === null && isForOthers(temporal, state),
    ]);
    return (
      <Layout title={`Review by ${request.verifier}`} crumbs={crumbsOf(null)}>
        <Review
          id={id}
          state={state}
          presentation={presentation}
          context={context}
          failed={failed}
          forOthers={forOthers}
        />
      </Layout>
    );
  }
}

const crumbsOf = (id: string | null) => [
  { href: '/reviews', label: 'Reviews' },
  ...(id === null ? [] : [{ href: reviewAt(id), label: 'The review' }]),
];

/** Updates are for reviews alone, whatever a form names. Throws GradusError('verifier', 'no-review'). */
function assertReview(id: string): void {
  if (/^verdict\/[^/]+\/[^/]+\/[0-9a-f]{64}$/.test(id)) return;
  throw new GradusError('verifier', 'no-review', `there is no review "${id.slice(0, 300)}"`);
}
