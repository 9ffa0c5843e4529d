import { RandomStream } from '../../../core/random.ts';
import { defineEnvironment, type PlainEnvironment, type Task } from '../../contract/environment.ts';
import { exactMatch } from '../../verifiers/exact-match.ts';
import { formatVerifier } from '../../verifiers/format.ts';
import { demonstrate } from './demonstrate.ts';
import { calculatorEnvironment } from './environment.ts';
import { OPERATORS, parseExpression, printExpression, type Operation } from './expression.ts';
import { expressionOf, hintAbout } from './hint.ts';

/**
 * The calculator's tasks with a hint behind the prompt, as `hindsight` writes one after an attempt that failed. A warm start
 * on these, too, shows a policy what a hint is.
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

/** What the hint says of an attempt that left the way at some operation, or had a wrong answer at its end. */
function hintAfterAttempt({ ref: { split, level, index }, calls }: Task): string {
  const random = new RandomStream('calculator-hinted', split, level, index);
  const due = calls!.map((call) => expressionOf(call.arguments));
  const at = random.int(0, due.length);
  const made = at < due.length && random.uniform() < 0.75 ? [otherThan(due[at]!, random)] : [];
  return hintAbout(due, [...due.slice(0, at), ...made], false)!;
}

/** Another operation of the same numbers, or the same one of other numbers. */
function otherThan(expression: string, random: RandomStream): string {
  const due = parseExpression(expression) as Operation;
  if (random.uniform() < 0.5) return printExpression({ ...due, right: (due.right as bigint) + 1n });
  const others = OPERATORS.filter((operator) => operator !== due.operator);
  return printExpression({ ...due, operator: random.pick(others) });
}
