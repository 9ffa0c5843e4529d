import type { FC } from 'hono/jsx';
import { closedBecause, isDecided } from '../../../core/ladder/opinions.ts';
import type { Opinion } from '../../../core/ladder/opinions.ts';
import type { Presentation } from '../../../runs/ladder/presenter.ts';
import type { ReviewState } from '../../../workflows/ladder/review-state.ts';
import { candidateAt } from '../../address.ts';
import type { Context } from '../../context.ts';
import { Subject } from '../../parts/subject.tsx';
import { Fact } from '../../parts/fact.tsx';
import { TextBlock, Text } from '../../parts/text.tsx';
import { AnswerOfTier } from '../candidate.tsx';
import { LONGEST_NAME } from './form.ts';
import { Cheaper, ReviewDeadline, RunLink } from './parts.tsx';
import { ReadOnly } from './closing.tsx';
import { Forms } from './verdict-form.tsx';

export interface FailedReview {
  problem: string;
  typed: Opinion | null;
}

interface ReviewProps {
  id: string;
  state: ReviewState;
  presentation: Presentation;
  context: Context;
  failed: FailedReview | null;
  /** The runs that wait for it are over. */
  forOthers: boolean;
}

/** Nothing can be added, though the verdict is not there yet. */
const isClosing = ({ opinions, reviewers, withdrawn }: ReviewState): boolean =>
  isDecided(opinions, reviewers) || withdrawn.some(({ all }) => all === true);

export const Review: FC<ReviewProps> = ({ id, state, presentation, context, failed, forOthers }) => {
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
        <Fact term="asked by">
          {run === null ? 'not known' : <RunLink run={run} />}
          {forOthers && (
            <div class="warn">
              is over: a verdict is stored for other runs, and changes nothing in this one
            </div>
          )}
        </Fact>
        {run !== null && (
          <Fact term="its history">
            <a href={candidateAt(run, verifier, digest)}>every decision and verdict</a>
          </Fact>
        )}
        <Fact term="environment">
          <Text value={ask.environment} max={100} />
        </Fact>
        <Fact term="review">
          <code>
            <Text value={id} max={300} />
          </code>{' '}
          (version <Text value={version} max={50} />)
        </Fact>
        <Fact term="decided by">
          {reviewers === 1 ? 'one reviewer' : `more than half of ${reviewers} reviewers`}
        </Fact>
        <Fact term="deadline">
          <ReviewDeadline of={state} />
        </Fact>
      </dl>
      <h2>Verdicts of lower tiers</h2>
      {(ask.cheaper ?? []).length === 0 && <p>None is known of it here.</p>}
      {(ask.cheaper ?? []).map((one) => (
        <div class="card">
          <Cheaper of={[one]} />
          {one.said !== undefined && (
            <TextBlock value={one.said} max={4000} label={`what ${one.verifier} reported`} />
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
            <Text value={reviewer} max={LONGEST_NAME} /> withdrew it
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
            <AnswerOfTier of={verdict} /> <small>({closedBecause(verdict)})</small>
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
