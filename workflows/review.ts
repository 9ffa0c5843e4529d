import {
  ApplicationFailure,
  allHandlersFinished,
  condition,
  defineQuery,
  defineUpdate,
  setHandler,
} from '@temporalio/workflow';
import { DEADLINE } from '../core/ladder/abstentions.ts';
import { isDecided, majority, refuseOpinion } from '../core/ladder/opinions.ts';
import type { Opinion } from '../core/ladder/opinions.ts';
import type { Ask } from '../core/ladder/requests.ts';
import type { TierAnswer } from '../core/tier-contract.ts';
import { verdictActivities } from './activities.ts';
import { closedBecause } from './review-state.ts';
import type { ReviewState } from './review-state.ts';
import { askShape } from './message-shapes.ts';
import { checked } from './refuse.ts';
import { Waiting } from './verdict.ts';

export const reviewState = defineQuery<ReviewState>('review');
/** `temporal workflow update execute --name submitVerdict --input '{"reviewer": "…", "score": 1}'` */
export const submitVerdict = defineUpdate<ReviewState, [Opinion]>('submitVerdict');

/**
 * A verdict of people: open until more than half of the reviewers agree, all have answered, or its deadline has passed.
 * Without a majority it abstains, and after the deadline only for the runs that waited for it.
 */
export async function review(input: Ask): Promise<void> {
  const ask = checked(askShape, input);
  const waiting = new Waiting();
  const { request, limits } = ask;
  const reviewers = ask.served.by === 'people' ? ask.served.reviewers : 1;
  const opinions: Opinion[] = [];
  const start = Date.now();
  let verdict: TierAnswer | null = null;
  const state = (): ReviewState => ({
    ask,
    reviewers,
    deadline: new Date(start + limits.timeoutSeconds * 1000).toISOString(),
    opinions,
    verdict,
  });
  setHandler(reviewState, state);
  setHandler(
    submitVerdict,
    (opinion) => {
      opinions.push(opinion);
      return state();
    },
    {
      validator: (opinion) => {
        const refusal = verdict ? closedBecause(verdict) : refuseOpinion(opinion, opinions, reviewers);
        if (refusal !== null) throw ApplicationFailure.nonRetryable(refusal, 'gradus.verifier.review');
      },
    },
  );
  const known = await verdictActivities.recallVerdict(request);
  if (known === null) await condition(() => isDecided(opinions, reviewers), limits.timeoutSeconds * 1000);
  verdict = known ?? answerOf();
  const kept = known ? null : await verdictActivities.keepVerdict({ request, answer: verdict });
  verdict = kept?.answer ?? verdict;
  await condition(allHandlersFinished);
  await waiting.tell(verdict, kept);

  function answerOf(): TierAnswer {
    const { verifier, version, digest } = request;
    const score = majority(opinions, reviewers);
    const spent = { seconds: (Date.now() - start) / 1000, usd: ask.cost.usd };
    const base = { format: 'gradus.verdict/1', verifier, version, digest, spent } as const;
    const said = opinions.map(({ reviewer, score: one, comment }) =>
      [`${reviewer}: ${one}`, ...(comment === undefined ? [] : [comment])].join(', '),
    );
    const evidence = said.join('; ').slice(0, 4000);
    if (score !== null) return { ...base, kind: 'scored', score, evidence };
    const abstained = { ...base, kind: 'abstained', ...(evidence && { evidence }) } as const;
    if (opinions.length >= reviewers)
      return { ...abstained, type: 'no-majority', reason: `${reviewers} reviewers are of two minds` };
    const reason = `${opinions.length} of ${reviewers} reviewers had answered when the time was up, without a majority`;
    return { ...abstained, type: DEADLINE, reason };
  }
}
