import { z } from 'zod';
import type { TaskRef } from '../../../core/refs.ts';
import {
  defineEnvironment,
  sessionTool,
  type Candidate,
  type Environment,
} from '../../contract/environment.ts';
import { fold } from '../../contract/session.ts';
import { formatVerifier } from '../../verifiers/format.ts';
import { judge, rightOf, tryOut } from './judge.ts';
import { codeTask, LEVELS } from './levels.ts';
import { codeRl, hiddenTests, judgementOf, testsPassed } from './verifiers.ts';

const runCode = sessionTool({
  name: 'run_code',
  description: "Tries a function on the task's examples, and says which of them it fails.",
  arguments: z.strictObject({
    code: z.string().min(1).max(8_000).describe('JavaScript that gives or declares f, like x => x + 1'),
  }),
  // A program that is stuck is ended after ten seconds, and others may wait for it.
  limits: { timeoutSeconds: 3600, maxOutputCharacters: 2_000 },
});

/** The state of a session: which task it is. Each call is a function of it and of the code. */
type State = { ref: TaskRef };

/** Small functions of JavaScript with hidden tests, in QuickJS: nothing needs to be installed. */
export function codeEnvironment(): Environment {
  return defineEnvironment({
    name: 'code',
    version: '1',
    levels: LEVELS.map(({ level }) => level),
    tools: [runCode],
    verifiers: [hiddenTests(), codeRl(), testsPassed(), formatVerifier()],
    // No part of a hidden test, nor the solution, is in what is kept of a task.
    task: (ref) => ({ ref, prompt: codeTask(ref).prompt }),
    taskCount: () => Infinity,
    demonstrate: ({ ref }) => {
      const { problem, visible } = codeTask(ref);
      const { code } = problem;
      return {
        turns: [
          {
            call: { name: runCode.name, arguments: { code } },
            observation: rightOf(visible.length, visible.length),
          },
          { answer: code },
        ],
        weight: 1,
      };
    },
    hint,
    sessions: fold<State>({
      // It waits for its turn: what tests may take is counted where they run.
      endSeconds: null,
      open: ({ ref }) => ({ ref: { ...ref } }),
      async act(state, call, { signal }) {
        const { code } = call.arguments as { code: string };
        return { state, did: await tryOut(codeTask(state.ref), code, signal) };
      },
      async end({ ref }, { answer }, signal) {
        const judgement = await judge(codeTask(ref), answer, signal);
        return { reward: judgement.passed === judgement.tests ? 1 : 0, info: { ...judgement } };
      },
    }),
  });
}

/** Which kind of mistake it was, and what to think of: no argument and no result of a hidden test. */
function hint({ task, episode }: Candidate): string | null {
  const judgement = judgementOf({ episode });
  if (judgement === undefined) return null;
  const { compileError, errors, tests } = judgement;
  if (compileError !== null) return `The answer must be a program that gives or declares f: ${compileError}.`;
  const { edges } = codeTask(task.ref);
  return errors > 0 ? `${errors} of ${tests} hidden tests ended in an error. ${edges}` : edges;
}
