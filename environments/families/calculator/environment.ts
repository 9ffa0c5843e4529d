import type { Json } from '../../../core/json/json.ts';
import { RandomStream } from '../../../core/random.ts';
import type { MadeTaskRef } from '../../../core/refs.ts';
import {
  defineEnvironment,
  type PlainEnvironment,
  type Task,
  type Tool,
} from '../../contract/environment.ts';
import { exactMatch, normalizeAnswer } from '../../verifiers/exact-match.ts';
import { executable } from '../../verifiers/executable.ts';
import { formatVerifier } from '../../verifiers/format.ts';
import { boxedMath } from '../../verifiers/math/boxed-math.ts';
import { callsThenAnswer, subGoals } from '../../verifiers/sub-goals.ts';
import { toolMatch } from '../../verifiers/tool-match.ts';
import { toolShaping } from '../../verifiers/tool-shaping.ts';
import { demonstrate } from './demonstrate.ts';
import { evaluateExpression, parseExpression, printExpression, steps } from './expression.ts';
import type { Operation } from './expression.ts';
import { hint } from './hint.ts';
import { LEVELS } from './levels.ts';
import { createProblems, splitOf, toldAgain, withOtherNumbers, type Problem } from './problems.ts';
import { computedInstead } from './relabel.ts';
import { calculatorTool, slowCalculatorTool, type SlowCalculatorOptions } from './tool.ts';

/** Expressions and short stories of 1 to 6 operations, and a calculator that does one at a time. */
export function calculatorEnvironment(name = 'calculator', tool: Tool = calculatorTool): PlainEnvironment {
  const problem = createProblems();
  const problemAt = ({ split, level, index, made }: MadeTaskRef): Problem => {
    if (made === undefined) return problem(split, level, index);
    const { expression, told } = inInfo(made[0]!);
    return toldAgain(expression, told);
  };
  const asked = ({ prompt, expression, told }: Problem): Omit<Task, 'ref'> => ({
    prompt,
    answer: String(evaluateExpression(expression)),
    calls: steps(expression).map(({ operation }) => ({
      name: tool.name,
      arguments: { expression: printExpression(operation) },
    })),
    info: { expression: printExpression(expression), told },
  });
  return defineEnvironment({
    name,
    levels: LEVELS.map(({ level }) => level),
    tools: [tool],
    verifiers: [
      exactMatch(),
      formatVerifier(),
      toolShaping(),
      executable(),
      boxedMath({ bare: true }),
      toolMatch(),
      subGoals({ version: '1', goals: (task) => callsThenAnswer(task, isSame) }),
    ],
    task: (ref) => ({ ref, ...asked(problemAt(ref)) }),
    hint,
    relabel: (candidate) => {
      const expression = computedInstead(candidate, tool.name);
      return expression && asked({ prompt: printExpression(expression), expression, told: false });
    },
    vary: ({ ref, info }, index) => {
      const problem = inInfo(info!);
      const was = printExpression(problem.expression);
      const random = new RandomStream('calculator', 'variation', ref.level, was, index);
      const other = withOtherNumbers({ level: ref.level, ...problem }, random);
      if (other === null) return { kind: 'none', reason: `no other numbers fit into ${was}` };
      const expression = printExpression(other);
      const proposal = { expression, told: problem.told };
      return { kind: 'task', proposal, canonical: expression, split: splitOf(expression) };
    },
    demonstrate,
    taskCount: () => Infinity,
  });
}

/** What is kept of a problem in a task, and in a variation. */
function inInfo(kept: Json): Pick<Problem, 'expression' | 'told'> {
  const { expression, told } = kept as { expression: string; told: boolean };
  return { expression: parseExpression(expression) as Operation, told };
}

const isSame = (answer: string, expected: string): boolean =>
  normalizeAnswer(answer) === normalizeAnswer(expected);

/** The same tasks with the calculator behind a slow call of the same name, so that the same policy can do them. */
export function slowCalculatorEnvironment(
  options: Omit<SlowCalculatorOptions, 'name'> = {},
): PlainEnvironment {
  return calculatorEnvironment('calculator-slow', slowCalculatorTool({ ...options, name: 'calculator' }));
}
