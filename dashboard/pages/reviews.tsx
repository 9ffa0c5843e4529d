import type { Context as Request } from 'hono';
import type { FC, PropsWithChildren } from 'hono/jsx';
import { GradusError, isA } from '../../core/errors.ts';
import { closedBecause, isDecided } from '../../core/ladder/opinions.ts';
import type { Opinion, Withdrawal } from '../../core/ladder/opinions.ts';
import type { CheaperVerdict } from '../../core/ladder/requests.ts';
import { isForOthers, openReviews, readState } from '../../runs/ladder/reviews.ts';
import type { OpenReview, OpenReviews } from '../../runs/ladder/reviews.ts';
import { whyAway } from '../../runs/temporal/temporal-away.ts';
import type { Presentation } from '../../runs/ladder/presenter.ts';
import { closeReviewsOf } from '../../runs/control/close-reviews.ts';
import { showReview, submitOpinion, withdrawOpinion } from '../../runs/control/review.ts';
import type { ReviewState } from '../../workflows/ladder/review-state.ts';
import { printable } from '../../core/printable.ts';
import { candidateAt, closeAllAt, drawingAt, reviewAt, reviewsOf, runAt } from '../address.ts';
import type { App, Context } from '../context.ts';
import { Layout, Live } from '../layout.tsx';
import { Action } from '../parts/action.tsx';
import { amount, duration, Time } from '../parts/numbers.tsx';
import { Scroll } from '../parts/scroll.tsx';
import { Subject } from '../parts/subject.tsx';
import { Block, Text } from '../parts/text.tsx';
import { Answer } from './candidate.tsx';

/** How long a page waits for a review. */
const PATIENCE_MS = 5000;
/** Reviews of the inbox whose subjects are drawn, and how long that may take, milliseconds. */
const MOST_DRAWN = 30;
const DRAWN_WITHIN_MS = 700;
/** Longest of what a reviewer writes, characters: it passes through the history, and becomes evidence. */
const LONGEST_COMMENT = 4000;
const LONGEST_NAME = 100;

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
              <a href={closeAllAt(run)}>Close those that nobody waits for …</a>
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
    if (by.reviewer === '') throw new GradusError('spec', 'invalid-form', 'reviewer: say who closes them');
    const { closed, left } = await closeReviewsOf(temporal, run, by, { patienceMs: PATIENCE_MS });
    if (left.length === 0) return c.redirect(reviewsOf(run), 303);
    throw new GradusError(
      'verifier',
      'review',
      `${closed.length} are closed, and ${left.length} are not; the first of them, ${left[0]!.id}: ${left[0]!.why}`,
    );
  });

  /** Of the first ones, what is drawn of their subjects: nobody waits for an environment that takes long. */
  async function drawingsOf(reviews: readonly OpenReview[]): Promise<Drawn> {
    const drawn: Drawn = new Map();
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
          It ends without a verdict, whoever has said what, and counts as an abstention for those who wait for
          it: another run, or a sweep, may ask again.
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
    const state = readState(await showReview(temporal, id, { patienceMs: PATIENCE_MS }));
    if (state !== null) return state;
    throw new GradusError('verifier', 'no-review', `"${id}" is a workflow, and no review`);
  }

  async function page(id: string, failed: Failed | null = null) {
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

/** By review, its drawing. */
type Drawn = Map<string, { src: string; alt: string }>;

interface Failed {
  problem: string;
  typed: Opinion | null;
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

type Form = Record<string, unknown>;

function textIn(form: Form, field: string, longest: number): string {
  const value = form[field];
  const text = typeof value === 'string' ? value.trim() : '';
  if (text.length <= longest) return text;
  throw new GradusError('spec', 'invalid-form', `${field}: at most ${longest} characters are taken`);
}

function withdrawalIn(form: Form): Omit<Withdrawal, 'all'> {
  const reason = textIn(form, 'reason', LONGEST_COMMENT);
  return { reviewer: textIn(form, 'reviewer', LONGEST_NAME), ...(reason !== '' && { reason }) };
}

function opinionIn(form: Form): Opinion {
  const score = textIn(form, 'score', 40);
  const comment = textIn(form, 'comment', LONGEST_COMMENT);
  return {
    reviewer: textIn(form, 'reviewer', LONGEST_NAME),
    // What is no number the review itself refuses.
    score: score === '' ? Number.NaN : Number(score.replace(',', '.')),
    ...(comment !== '' && { comment }),
  };
}

const Inbox: FC<{ reviews: readonly OpenReview[]; more: boolean; drawn: Drawn }> = ({
  reviews,
  more,
  drawn,
}) => {
  if (reviews.length === 0) return <p>No review is open: nobody waits for a person.</p>;
  return (
    <Scroll label="open reviews">
      <table>
        <caption>
          {amount(reviews.length, 'open review')}
          {more && ', and more'}; those with the nearest deadline first
        </caption>
        <thead>
          <tr>
            <th scope="col">review</th>
            <th scope="col">run</th>
            <th scope="col">what</th>
            <th scope="col">cheaper verdicts</th>
            <th scope="col">opinions</th>
            <th scope="col">deadline, UTC</th>
          </tr>
        </thead>
        <tbody>
          {reviews.map(({ id, run, startedAt, state, runOver }) => (
            <tr data-item>
              <td>
                <a href={reviewAt(id)}>
                  <Text value={nameOf(id)} max={120} />
                </a>
              </td>
              <td>
                {run === null ? 'not known' : <RunLink run={run} />}
                {runOver && <div class="warn">is over: a verdict is kept for other runs</div>}
              </td>
              {state === null ? (
                <td colspan={4}>
                  asked <Time at={startedAt} />; it does not answer now: is an orchestrator there?
                </td>
              ) : (
                <>
                  <td>
                    {drawn.has(id) && (
                      <img
                        class="drawing small"
                        src={drawn.get(id)!.src}
                        alt={printable(drawn.get(id)!.alt)}
                      />
                    )}
                    <code>
                      <Text value={JSON.stringify(state.ask.request.subject)} max={160} />
                    </code>
                  </td>
                  <td>
                    <Cheaper of={state.ask.cheaper ?? []} />
                  </td>
                  <td>
                    {state.opinions.length} of {state.reviewers}
                  </td>
                  <td>
                    <Deadline of={state} />
                  </td>
                </>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
};

/** `verdict/expert/1/0a1b…` without what is the same of all, and as much of the digest as tells them apart. */
const nameOf = (id: string): string => {
  const [, verifier = id, version = '', digest = ''] = id.split('/');
  return [verifier, version, digest.slice(0, 12)].filter((part) => part !== '').join(' ');
};

const RunLink: FC<{ run: string }> = ({ run }) => (
  <a href={runAt(run)}>
    <Text value={run} max={100} />
  </a>
);

const Deadline: FC<{ of: ReviewState }> = ({ of: { deadline } }) => {
  const left = (Date.parse(deadline) - Date.now()) / 1000;
  return (
    <>
      <Time at={Date.parse(deadline)} /> <small>{left > 0 ? `in ${duration(left)}` : 'over'}</small>
    </>
  );
};

const Cheaper: FC<{ of: readonly CheaperVerdict[] }> = ({ of }) => {
  if (of.length === 0) return <>none is known</>;
  return (
    <ul class="plain">
      {of.map(({ verifier, score, uncertainty }) => (
        <li>
          <Text value={verifier} max={100} />{' '}
          {score === null
            ? 'abstained'
            : `${score.toFixed(3)}${uncertainty === undefined ? '' : ` ± ${uncertainty.toFixed(3)}`}`}
        </li>
      ))}
    </ul>
  );
};

const ReadOnly: FC = () => <p class="note">This dashboard only shows: it was started without --actions.</p>;

const Who: FC<{ label: string; name: string; value?: string }> = ({ label, name, value = '' }) => (
  <label>
    {label}
    <input name={name} required maxlength={LONGEST_NAME} value={value} autocomplete="name" />
  </label>
);

interface ClosingProps {
  context: Context;
  to: string;
  label: string;
  who: string;
  open: { at: string; label: string };
}

/** Who closes reviews, and why; or leaves them open. */
const Closing: FC<PropsWithChildren<ClosingProps>> = ({ context, to, label, who, open, children }) => (
  <>
    {context.actions ? (
      <Action to={to} token={context.formToken} label={label} danger>
        {children}
        <Who label={who} name="reviewer" />
        <label>
          Why
          <input name="reason" maxlength={LONGEST_COMMENT} />
        </label>
      </Action>
    ) : (
      <ReadOnly />
    )}
    <p>
      <a href={open.at}>{open.label}</a>
    </p>
  </>
);

interface ReviewProps {
  id: string;
  state: ReviewState;
  presentation: Presentation;
  context: Context;
  failed: Failed | null;
  /** The runs that wait for it are over. */
  forOthers: boolean;
}

/** Nothing can be added, though the verdict is not there yet. */
const isClosing = ({ opinions, reviewers, withdrawn }: ReviewState): boolean =>
  isDecided(opinions, reviewers) || withdrawn.some(({ all }) => all === true);

const Review: FC<ReviewProps> = ({ id, state, presentation, context, failed, forOthers }) => {
  const { ask, run, reviewers, opinions, withdrawn, verdict } = state;
  const { verifier, version, digest, subject } = ask.request;
  return (
    <>
      {failed && (
        <p class="warning" role="alert">
          <Text value={failed.problem} max={1000} />
        </p>
      )}
      <Subject subject={subject} presentation={presentation} />
      <dl class="facts">
        <dt>asked by</dt>
        <dd>
          {run === null ? 'not known' : <RunLink run={run} />}
          {forOthers && (
            <div class="warn">is over: a verdict is kept for other runs, and changes nothing in this one</div>
          )}
        </dd>
        {run !== null && (
          <>
            <dt>its way so far</dt>
            <dd>
              <a href={candidateAt(run, verifier, digest)}>every decision and verdict</a>
            </dd>
          </>
        )}
        <dt>environment</dt>
        <dd>
          <Text value={ask.environment} max={100} />
        </dd>
        <dt>review</dt>
        <dd>
          <code>
            <Text value={id} max={300} />
          </code>{' '}
          (version <Text value={version} max={50} />)
        </dd>
        <dt>decided by</dt>
        <dd>{reviewers === 1 ? 'one reviewer' : `more than half of ${reviewers} reviewers`}</dd>
        <dt>deadline</dt>
        <dd>
          <Deadline of={state} />
        </dd>
      </dl>
      <h2>Cheaper verdicts</h2>
      {(ask.cheaper ?? []).length === 0 && <p>None is known of it here.</p>}
      {(ask.cheaper ?? []).map((one) => (
        <div class="card">
          <Cheaper of={[one]} />
          {one.said !== undefined && (
            <Block value={one.said} max={4000} label={`what ${one.verifier} said`} />
          )}
        </div>
      ))}
      <h2>Opinions</h2>
      {opinions.length === 0 && <p>Nobody has answered yet.</p>}
      <ul>
        {opinions.map(({ reviewer, score, comment }) => (
          <li>
            <strong>
              <Text value={reviewer} max={LONGEST_NAME} />
            </strong>
            : {score}
            {comment !== undefined && (
              <>
                {' – '}
                <Text value={comment} />
              </>
            )}
          </li>
        ))}
        {withdrawn.map(({ reviewer, reason }) => (
          <li class="muted">
            <Text value={reviewer} max={LONGEST_NAME} /> took it back
            {reason !== undefined && (
              <>
                {': '}
                <Text value={reason} />
              </>
            )}
          </li>
        ))}
      </ul>
      {verdict !== null ? (
        <>
          <h2>Verdict</h2>
          <p>
            <Answer of={verdict} /> <small>({closedBecause(verdict)})</small>
          </p>
        </>
      ) : isClosing(state) ? (
        <p role="status">
          It is decided, and its verdict is being written down: load this page again in a moment.
        </p>
      ) : context.actions ? (
        <Forms id={id} state={state} token={context.formToken} typed={failed?.typed ?? null} />
      ) : (
        <ReadOnly />
      )}
    </>
  );
};

const Forms: FC<{ id: string; state: ReviewState; token: string; typed: Opinion | null }> = ({
  id,
  state,
  token,
  typed,
}) => (
  <>
    <h2>Your verdict</h2>
    <form method="post" action={`${reviewAt(id)}/submit`} class="verdict">
      <input type="hidden" name="token" value={token} />
      <Who label="Your name" name="reviewer" value={typed?.reviewer ?? ''} />
      <label>
        Score, from 0, a clear no, to 1, a clear yes
        <input
          name="score"
          type="number"
          min="0"
          max="1"
          step="any"
          required
          value={typed === null || Number.isNaN(typed.score) ? '' : String(typed.score)}
        />
      </label>
      <label>
        Comment, if there is something to say
        <textarea name="comment" rows={4} maxlength={LONGEST_COMMENT}>
          {typed?.comment ?? ''}
        </textarea>
      </label>
      <button type="submit">Submit verdict</button>
    </form>
    {state.opinions.length > 0 && (
      <>
        <h2>Take an opinion back</h2>
        <Action to={`${reviewAt(id)}/withdraw`} token={token} label="Take it back">
          <label>
            Whose
            <select name="reviewer">
              {state.opinions.map(({ reviewer }) => (
                <option value={reviewer}>
                  <Text value={reviewer} max={LONGEST_NAME} />
                </option>
              ))}
            </select>
          </label>
          <label>
            Why
            <input name="reason" maxlength={LONGEST_COMMENT} />
          </label>
        </Action>
      </>
    )}
    <p>
      <a href={`${reviewAt(id)}/close`}>Close the review without a verdict …</a>
    </p>
  </>
);
