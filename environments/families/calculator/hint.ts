import { callByCall } from '../../../core/episode/call-by-call.ts';
import type { Candidate } from '../../contract/environment.ts';
import { parseExpression } from './expression.ts';
import type { Operation, Operator } from './expression.ts';

const NAMES: Record<Operator, string> = {
  '+': 'an addition',
  '-': 'a subtraction',
  '*': 'a multiplication',
  '/': 'a division',
};
const PLACES = ['first', 'second', 'third', 'fourth', 'fifth', 'sixth'];

/**
 * Where the calls of an attempt leave the way of `task.calls`, in words without a digit: neither the answer nor a number of
 * the way can be in it. Null where a call failed, of which its error says more, and where nothing is amiss.
 */
export function hint({ task, episode, answer }: Candidate): string | null {
  if (episode.calls !== undefined) return null;
  const due = task.calls!.map((call) => expressionOf(call.arguments));
  const turns = episode.turns.flatMap(callByCall);
  if (turns.some(({ observation }) => observation?.error !== undefined)) return null;
  const made = turns.flatMap(({ action, observation }) =>
    action.kind === 'call' && observation ? [expressionOf(action.call.arguments)] : [],
  );
  return hintAbout(due, made, answer === task.answer);
}

/** The same of what was due and what was made instead: operations of two numbers, without spaces. */
export function hintAbout(
  due: readonly string[],
  made: readonly string[],
  rightAnswer: boolean,
): string | null {
  if (made.length === 0) return 'Nothing was computed: each operation is a call of the calculator.';
  const wrong = due.findIndex((expression, i) => made[i] !== expression);
  if (wrong < 0)
    return made.length > due.length
      ? 'More was computed than was asked for.'
      : rightAnswer
        ? null
        : 'Each operation was right: the answer is the result of the last one, and nothing else.';
  const place = PLACES[wrong]!;
  const wanted = NAMES[operatorOf(due[wrong]!)];
  if (made[wrong] === undefined) return `The ${place} operation was left out: it is ${wanted}.`;
  return operatorOf(made[wrong]) === operatorOf(due[wrong]!)
    ? `The ${place} operation is ${wanted}, as was done, but of other numbers.`
    : `The ${place} operation is ${wanted}, and not ${NAMES[operatorOf(made[wrong])]}.`;
}

/** Without its spaces: what the calculator took is an operation of two numbers. */
export const expressionOf = (args: unknown): string =>
  (args as { expression: string }).expression.replace(/\s+/gu, '');

const operatorOf = (expression: string): Operator => (parseExpression(expression) as Operation).operator;
