import { GradusError } from '../../../core/errors.ts';
import { defineEnvironment, type PlainEnvironment } from '../../contract/environment.ts';
import { exactMatch } from '../../verifiers/exact-match.ts';
import { formatVerifier } from '../../verifiers/format.ts';
import { evaluateExpression, printExpression } from './expression.ts';
import { createProblems } from './problems.ts';
import { calculatorTool } from './tool.ts';

/** Whether the task has the tool, and whether the user asks for what needs it. */
interface Case {
  given: boolean;
  asked: boolean;
}

/** The four cases by level. The last two are Agent-FLAN's negatives (Chen et al. 2024, arXiv 2403.12881). */
const CASES: ReadonlyMap<number, Case> = new Map([
  [1, { given: true, asked: true }],
  [2, { given: false, asked: false }],
  [3, { given: true, asked: false }],
  [4, { given: false, asked: true }],
]);

/** What an expert answers who is asked for what needs a tool, and has none. */
const NO_TOOL = 'no tool';

/** Expressions to compute or to repeat, with a calculator or without: a policy must see whether there is one, and whether it is wanted. */
export function calculatorNegativesEnvironment(): PlainEnvironment {
  const problem = createProblems();
  return defineEnvironment({
    name: 'calculator-negatives',
    version: '1',
    levels: [...CASES.keys()],
    tools: [calculatorTool],
    verifiers: [exactMatch(), formatVerifier()],
    task: (ref) => {
      const { given, asked } = caseAt(ref.level);
      // One operation, as the calculator's own first level asks it.
      const { expression } = problem(ref.split, 1, ref.index);
      const written = printExpression(expression);
      const solved = given ? String(evaluateExpression(expression)) : NO_TOOL;
      return {
        ref,
        prompt: `${asked ? 'Compute' : 'Repeat'} ${written}.`,
        answer: asked ? solved : written,
        calls: given && asked ? [{ name: calculatorTool.name, arguments: { expression: written } }] : [],
        ...(!given && { tools: [] }),
      };
    },
    demonstrate: ({ answer, calls }) => ({
      turns: [...calls!.map((call) => ({ call, observation: answer! })), { answer: answer! }],
      weight: 1,
    }),
    taskCount: () => Infinity,
  });
}

function caseAt(level: number): Case {
  const found = CASES.get(level);
  if (found) return found;
  throw new GradusError('environment', 'task', `calculator-negatives has no level ${level}`);
}
