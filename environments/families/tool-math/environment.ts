import { defineEnvironment, type Environment } from '../../contract/environment.ts';
import { openSandbox, sandboxNeeds } from '../../sandbox/open-sandbox.ts';
import { executable } from '../../verifiers/executable.ts';
import { formatVerifier } from '../../verifiers/format.ts';
import { boxedMath } from '../../verifiers/math/boxed-math.ts';
import { toolShaping } from '../../verifiers/tool-shaping.ts';
import { LEVELS, problemAt } from './problems.ts';
import { pythonTool } from './python-tool.ts';

/** Problems with whole numbers, Python in the sandbox, and an answer in a box. */
export function toolMathEnvironment(): Environment {
  return defineEnvironment({
    name: 'tool-math',
    version: 'tasks 2',
    levels: LEVELS,
    tools: [pythonTool],
    // ReTool's dialect takes the box off, so an answer without one is read as a whole.
    verifiers: [boxedMath({ bare: true }), formatVerifier(), toolShaping(), executable()],
    task: (ref) => {
      const { text, code, answer } = problemAt(ref.split, ref.level, ref.index);
      return {
        ref,
        prompt: text,
        answer: `\\boxed{${answer}}`,
        calls: [{ name: pythonTool.name, arguments: { code } }],
      };
    },
    demonstrate: ({ calls, answer, ref }) => ({
      turns: [
        { call: calls![0]!, observation: String(problemAt(ref.split, ref.level, ref.index).answer) },
        { answer: answer! },
      ],
      weight: 1,
    }),
    taskCount: () => Infinity,
    // Found and tried once; where there is none, what is missing is said before anything runs.
    prepare: async () => void (await openSandbox()),
    needs: sandboxNeeds,
  });
}
