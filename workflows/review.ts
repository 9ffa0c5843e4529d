import {
  ApplicationFailure,
  allHandlersFinished,
  condition,
  defineQuery,
  defineUpdate,
  setHandler,
} from '@temporalio/workflow';
import { majority, refuseOpinion } from '../core/ladder/opinions.ts';
import type { Opinion } from '../core/ladder/opinions.ts';
import type { Ask } from '../core/ladder/requests.ts';
import type { TierAnswer } from '../core/tier-contract.ts';
import { verdictActivities } from './activities.ts';
import { Waiting } from './verdict.ts';

/** What people are asked, and what they have said so far. */
export interface ReviewState {
  ask: Ask;
  reviewers: number;
  /** ISO 8601; after it the verdict is an abstention. */
  deadline: string;
  opinions: Opinion[];
}
export const reviewState = defineQuery<ReviewState>('review');
/** `temporal workflow update execute --name submitVerdict --input '{"reviewer": "…", "score": 1}'` */
export const submitVerdict = defineUpdate<ReviewState, [Opinion]>('submitVerdict');

/** A verdict of people: open until more than half of the reviewers agree, or its deadline has passed, and then it abstains. */
export async function review(ask: Ask): Promise<void> {
  const waiting = new Waiting();
  const { request, limits } = ask;
  const reviewers = ask.served.by === 'people' ? ask.served.reviewers : 1;
  const opinions: Opinion[] = [];
  const start = Date.now();
  let closed = false;
  const state = (): ReviewState => ({
    ask,
    reviewers,
    deadline: new Date(start + limits.timeoutSeconds * 1000).toISOString(),
    opinions,
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
        const refusal = closed ? 'this review is closed' : refuseOpinion(opinion, opinions);
        if (refusal !== null) throw ApplicationFailure.nonRetryable(refusal, 'gradus.verifier.review');
      },
    },
  );
  const known = await verdictActivities.recallVerdict(request);
  if (known === null)
    await condition(() => majority(opinions, reviewers) !== null, limits.timeoutSeconds * 1000);
  closed = true;
  const answer = known ?? (await verdictActivities.keepVerdict({ request, answer: answerOf() }));
  await condition(allHandlersFinished);
  await waiting.tell(answer, known === null ? answer.spent : null);

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
    const reason = `${opinions.length} of ${reviewers} reviewers had answered when the time was up, without a majority`;
    return { ...base, kind: 'abstained', type: 'no-majority', reason, ...(evidence && { evidence }) };
  }
}
