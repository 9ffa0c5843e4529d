import { counted } from '../core/counted.ts';
import type { OpenReview } from '../runs/ladder/reviews.ts';
import { howLong } from '../core/time/how-long.ts';
import { shortened } from './shortened.ts';

/** Characters of a subject; `gradus review show` has the whole. */
const SUBJECT = 200;

/** What a reviewer needs to choose among reviews: whose it is, what is judged, what is known, and until when. */
export function reviewLines({ id, run, startedAt, state, runOver }: OpenReview, now: number): string[] {
  const over = runOver ? ', which is over (a verdict is stored for other runs)' : '';
  const asked = run === null ? '' : `of ${run}${over}, `;
  if (state === null)
    return [id, `  ${asked}open for ${howLong(now - startedAt)}; no worker says what is judged`];
  const { ask, reviewers, opinions, deadline } = state;
  const left = Date.parse(deadline) - now;
  const until = left > 0 ? `${howLong(left)} left, until ${deadline}` : `its time was up at ${deadline}`;
  const cheaper = (ask.cheaper ?? []).map(
    ({ verifier, score, said }) => `${verifier} ${score === null ? (said ?? 'abstained') : score.toFixed(3)}`,
  );
  return [
    id,
    `  ${asked}${answeredText(opinions, reviewers)}, ${until}`,
    `  ${shortened(JSON.stringify(ask.request.subject), SUBJECT)}`,
    ...(cheaper.length === 0 ? [] : [`  before: ${shortened(cheaper.join(', '), SUBJECT)}`]),
  ];
}

/** `1 of 2 reviewers have answered`. */
export const answeredText = (opinions: readonly unknown[], reviewers: number): string =>
  `${opinions.length} of ${counted(reviewers, 'reviewer')} ${reviewers === 1 ? 'has' : 'have'} answered`;
