import { RandomStream } from '../../../core/random.ts';
import {
  defineEnvironment,
  ToolRefusal,
  type PlainEnvironment,
  type Task,
} from '../../contract/environment.ts';
import { exactMatch } from '../../verifiers/exact-match.ts';
import { formatVerifier } from '../../verifiers/format.ts';
import { demonstrate } from './demonstrate.ts';
import { calculatorEnvironment } from './environment.ts';
import {
  evaluateExpression,
  OPERATORS,
  parseExpression,
  printExpression,
  type Operation,
} from './expression.ts';
import { expressionOf, hintAbout } from './hint.ts';

/**
 * The calculator's tasks with a hint behind the prompt, as `hindsight` writes one after an attempt whose calls left the way
 * or whose answer was wrong. A warm start on these, too, shows a policy what a hint is.
 */
export function calculatorHintedEnvironment(): PlainEnvironment {
  const plain = calculatorEnvironment();
  return defineEnvironment({
    name: 'calculator-hinted',
    version: '1',
    levels: plain.levels,
    tools: plain.tools,
    verifiers: [exactMatch(), formatVerifier()],
    task: (ref) => {
      const task = plain.task({ ...ref, environment: plain.name });
      return { ...task, ref, prompt: `${task.prompt}\n\n${hintAfterAttempt(task)}` };
    },
    demonstrate,
    taskCount: () => Infinity,
  });
}

/** What the hint says of an attempt that left the way at some operation, did more, or had a wrong answer at its end. */
function hintAfterAttempt({ ref: { split, level, index }, calls }: Task): string {
  const random = new RandomStream('calculator-hinted', split, level, index);
  const due = calls!.map((call) => expressionOf(call.arguments));
  const at = random.int(0, due.length);
  const goesOn = random.uniform() < 0.75;
  const next = at < due.length ? otherThan(due[at]!, random) : due.at(-1)!;
  return hintAbout(due, [...due.slice(0, at), ...(goesOn ? [next] : [])], false)!;
}

/** Another operation of the same numbers, or the same one of other numbers, that the calculator carries out. */
function otherThan(expression: string, random: RandomStream): string {
  const due = parseExpression(expression) as Operation;
  const others = OPERATORS.map((operator): Operation => ({ ...due, operator })).filter(
    (one) => one.operator !== due.operator && isPossible(one),
  );
  const ofOthers = [1n, -1n, -(due.right as bigint) + 1n]
    .map((more): Operation => ({ ...due, right: (due.right as bigint) + more }))
    .filter((one) => one.right !== due.right && isPossible(one));
  const [first, second] = random.uniform() < 0.5 ? [others, ofOthers] : [ofOthers, others];
  return printExpression(random.pick(first.length > 0 ? first : second));
}

/** An attempt that the calculator refuses has its error for a hint. */
function isPossible(operation: Operation): boolean {
  try {
    evaluateExpression(operation);
    return true;
  } catch (error) {
    if (error instanceof ToolRefusal) return false;
    throw error;
  }
}
