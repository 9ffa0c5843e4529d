import { callByCall } from '../../core/episode/call-by-call.ts';
import type { Candidate } from '../contract/environment.ts';
import { cutText } from './facts.ts';

/** Longest hint, in characters. */
const LONGEST_HINT = 1000;
/** Of one thing that went wrong. */
const LONGEST_PART = 300;

/**
 * What went wrong in an attempt, in words, for whoever tries its task again: what tools refused, how it ended, and what
 * verifiers said, unless that has the expected answer in it.
 */
export function whatWentWrong({ task, episode, answer }: Candidate, evidence: readonly string[]): string {
  const { turns, status } = episode;
  const errors = turns
    .flatMap(callByCall)
    .flatMap(({ observation }) => (observation?.error ? [observation.text] : []));
  const ending =
    answer !== null
      ? `the answer ${answer} was wrong`
      : status.kind === 'failed'
        ? `a call failed: ${status.reason}`
        : `there was no answer${status.kind === 'truncated' ? ` within the limit of ${status.limit}` : ''}`;
  const parts = [...new Set([...errors, ending, ...evidence])]
    .filter((text) => !givesAway(text, task.answer))
    .map((part) => cutText(part, LONGEST_PART));
  if (parts.length === 0) return 'An earlier attempt failed. Try again.';
  return cutText(`An earlier attempt failed: ${parts.join('; ')}. Try again.`, LONGEST_HINT);
}

/** Whether a text has the expected answer in it, however it is spaced and written. */
function givesAway(text: string, answer: string | undefined): boolean {
  const plain = (of: string): string =>
    of
      .normalize('NFKC')
      .replace(/[\s,_']/gu, '')
      .toLowerCase();
  return answer !== undefined && plain(answer) !== '' && plain(text).includes(plain(answer));
}
