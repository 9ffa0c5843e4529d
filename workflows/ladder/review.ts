import {
  ApplicationFailure,
  allHandlersFinished,
  condition,
  defineQuery,
  defineUpdate,
  setHandler,
} from '@temporalio/workflow';
import { DEADLINE, WITHDRAWN } from '../../core/ladder/abstentions.ts';
import {
  closedBecause,
  isDecided,
  majority,
  refuseOpinion,
  refuseWithdrawal,
} from '../../core/ladder/opinions.ts';
import type { Opinion, Withdrawal } from '../../core/ladder/opinions.ts';
import type { VerdictRequest } from '../../core/ladder/requests.ts';
import type { TierAnswer } from '../../core/tier-contract.ts';
import { verdictActivities } from '../activities.ts';
import type { ReviewState } from './review-state.ts';
import { askShape } from '../control/message-shapes.ts';
import { checked } from '../control/refuse.ts';
import { Waiting } from '../verification/verdict.ts';

const reviewState = defineQuery<ReviewState>('review');
/** `temporal workflow update execute --name submitVerdict --input '{"reviewer": "…", "score": 1}'` */
const submitVerdict = defineUpdate<ReviewState, [Opinion]>('submitVerdict');
/**
 * `temporal workflow update execute --name withdraw --input '{"reviewer": "…"}'`: a reviewer takes back what they said,
 * and may say something else; with `"all": true` the review is closed, as an abstention for those who wait for it.
 */
const withdraw = defineUpdate<ReviewState, [Withdrawal]>('withdraw');

/** Withdrawals that are shown. */
const MOST_WITHDRAWN = 20;

/**
 * A verdict of people: open until more than half of the reviewers agree, all have answered, its deadline has passed, or it is
 * taken back. Without a majority it abstains, and after the deadline, or taken back, only for the runs that waited for it.
 */
export async function review(input: VerdictRequest): Promise<void> {
  const ask = checked(askShape, input);
  const waiting = new Waiting();
  const { request, limits } = ask;
  const reviewers = ask.served.by === 'people' ? ask.served.reviewers : 1;
  const opinions: Opinion[] = [];
  const withdrawn: Withdrawal[] = [];
  let closedBy: Withdrawal | null = null;
  const start = Date.now();
  let verdict: TierAnswer | null = null;
  const state = (): ReviewState => ({
    run: ask.run ?? null,
    waiting: [...waiting.all],
    ask,
    reviewers,
    deadline: new Date(start + limits.timeoutSeconds * 1000).toISOString(),
    opinions,
    withdrawn,
    verdict,
  });
  const refuse = (otherwise: string | null): void => {
    // What comes together with the one that closed it.
    const answer = verdict ?? (closedBy && answerOf());
    const refusal = answer ? closedBecause(answer) : otherwise;
    if (refusal !== null) throw ApplicationFailure.nonRetryable(refusal, 'gradus.verifier.review');
  };
  setHandler(reviewState, state);
  setHandler(
    submitVerdict,
    (opinion) => {
      opinions.push(opinion);
      return state();
    },
    { validator: (opinion) => refuse(refuseOpinion(opinion, opinions, reviewers)) },
  );
  setHandler(
    withdraw,
    (withdrawal) => {
      withdrawn.push(withdrawal);
      withdrawn.splice(0, withdrawn.length - MOST_WITHDRAWN);
      if (withdrawal.all) closedBy = withdrawal;
      else {
        const at = opinions.findIndex(({ reviewer }) => reviewer === withdrawal.reviewer);
        opinions.splice(at, 1);
      }
      return state();
    },
    { validator: (withdrawal) => refuse(refuseWithdrawal(withdrawal, opinions, reviewers)) },
  );
  const known = await verdictActivities.recallVerdict(request);
  const closed = (): boolean => closedBy !== null || isDecided(opinions, reviewers);
  if (known === null) await condition(closed, limits.timeoutSeconds * 1000);
  verdict = known ?? answerOf();
  const kept = known ? null : await verdictActivities.keepVerdict({ request, answer: verdict });
  verdict = kept?.answer ?? verdict;
  await condition(allHandlersFinished);
  await waiting.tell(verdict, kept, 'people');

  function answerOf(): TierAnswer {
    const { verifier, version, digest } = request;
    const score = majority(opinions, reviewers);
    // Who has not said anything is not paid.
    const usd = opinions.length === 0 ? 0 : ask.cost.usd;
    const spent = { seconds: (Date.now() - start) / 1000, usd };
    const base = { format: 'gradus.verdict/1', verifier, version, digest, spent } as const;
    const lines = opinions.map(({ reviewer, score: one, comment }) =>
      [`${reviewer}: ${one}`, ...(comment === undefined ? [] : [comment])].join(', '),
    );
    const evidence = lines.join('; ').slice(0, 4000);
    if (score !== null && closedBy === null) return { ...base, kind: 'scored', score, evidence };
    const abstained = { ...base, kind: 'abstained', ...(evidence && { evidence }) } as const;
    if (closedBy !== null) {
      const why = closedBy.reason === undefined ? '' : `: ${closedBy.reason.slice(0, 1000)}`;
      return { ...abstained, type: WITHDRAWN, reason: `${closedBy.reviewer} took it back${why}` };
    }
    if (opinions.length >= reviewers)
      return { ...abstained, type: 'no-majority', reason: `${reviewers} reviewers are of two minds` };
    const reason = `${opinions.length} of ${reviewers} reviewers had answered when the time was up, without a majority`;
    return { ...abstained, type: DEADLINE, reason };
  }
}
