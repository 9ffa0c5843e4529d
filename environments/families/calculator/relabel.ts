import type { Candidate } from '../../contract/environment.ts';
import { normalizeAnswer } from '../../verifiers/exact-match.ts';
import { evaluateExpression, expressionsOf, parseExpression, printExpression, steps } from './expression.ts';
import type { Operation } from './expression.ts';
import { LEVELS } from './levels.ts';
import { mayBeAsked } from './problems.ts';

/**
 * The expression that an episode has computed instead of its own: by one call an operation, each with the results of those
 * before, and answered with the last result. It is of the same level, lest whoever leaves an operation out be taught that, and
 * of the same split; null where there is none. An episode that failed a call, or thought of another expression than this one,
 * is no example of how to compute it. Nor is one that was told a story: nobody knows which other story it would be right
 * for, and behind a bare expression it would teach to think where there is nothing to find out (docs/log.md).
 */
export function computedInstead({ task, episode, answer }: Candidate, toolName: string): Operation | null {
  const { told } = task.info as { told: boolean };
  const calls = episode.turns.slice(0, -1);
  if (told || answer === null || calls.length === 0 || calls.length > MOST_CALLS) return null;
  const operations: Operation[] = [];
  for (const { action, observation } of calls) {
    if (action.kind !== 'call' || action.call.name !== toolName) return null;
    if (observation === undefined || observation.error !== undefined) return null;
    const { expression } = action.call.arguments as { expression: string };
    operations.push(parseExpression(expression) as Operation);
  }
  if (normalizeAnswer(answer) !== String(evaluateExpression(operations.at(-1)!))) return null;
  const { split, level } = task.ref;
  const isIt = (one: Operation) => mayBeAsked(split, level, one) && thinksOfIt(episode.turns, one);
  return expressionsOf(operations).find(isIt) ?? null;
}

const MOST_CALLS = Math.max(...LEVELS.map(({ operations: [, most] }) => most));

/** What is written as an expression, without its spaces: numbers and operations, and not a number alone. */
const EXPRESSION = /(?!-?\d+(?![-+*/()\d]))[-+*/()]*\d[-+*/()\d]*/gu;

/** Whether each turn writes the operation to do, or what is left to do, and no other expression. */
function thinksOfIt(turns: Candidate['episode']['turns'], expression: Operation): boolean {
  const all = steps(expression);
  return turns.every(({ text }, i) => {
    const left = i === 0 ? expression : all[i - 1]!.remaining;
    const due = [left, ...(all[i] ? [all[i].operation] : [])].map(printExpression);
    return (text.replace(/\s+/gu, '').match(EXPRESSION) ?? []).every((written) => due.includes(written));
  });
}
