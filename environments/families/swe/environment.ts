import { createHash } from 'node:crypto';
import type { Split, TaskRef } from '../../../core/refs.ts';
import {
  defineEnvironment,
  ToolRefusal,
  type Demonstration,
  type Environment,
  type Need,
  type Task,
} from '../../contract/environment.ts';
import { openSandbox } from '../../sandbox/open-sandbox.ts';
import { fold } from '../../contract/session.ts';
import { formatVerifier } from '../../verifiers/format.ts';
import type { Bug } from './bug.ts';
import { failToPass } from './fail-to-pass.ts';
import { judgePatch } from './judge.ts';
import { patchBetween, patched } from './patch.ts';
import { patchSimilarity } from './patch-similarity.ts';
import { toolsOf, type TreeToolName } from './tools.ts';

/** Where bugs come from. */
export interface BugSource<B extends Bug = Bug> {
  name: string;
  version: string;
  levels: readonly number[];
  tools: readonly TreeToolName[];
  /** Those whose calls may take minutes: each is an activity of its own, as it is not of the others. */
  long?: readonly TreeToolName[];
  /** The same for the same coordinates; what is in one split is in no other. */
  bug(ref: TaskRef): B;
  prompt(bug: B, ref: TaskRef): string;
  taskCount(split: Split, level: number): number;
  /** An expert's way; left out where there is none to imitate. */
  demonstrate?(bug: B, task: Task, index: number): Demonstration;
  prepare?(): void;
  needs(): Promise<readonly Need[]>;
}

/** The state of a session: what its calls have made of the tree. Each call is a function of it. */
type State = {
  id: string;
  patch: string;
  task: { environment: string; split: Split; level: number; index: number };
};

/** A tree with a bug, tools to find and mend it, and the original tests to judge by (ADR 0052). */
export function sweEnvironment<B extends Bug>(source: BugSource<B>): Environment {
  const tools = toolsOf(source.tools, source.long);
  return defineEnvironment({
    name: source.name,
    version: source.version,
    levels: source.levels,
    tools: tools.map(({ tool }) => tool),
    verifiers: [failToPass(), patchSimilarity(({ task }) => source.bug(task.ref)), formatVerifier()],
    task: (ref) => {
      const bug = source.bug(ref);
      // Prompts of different bugs may be the same; what tells them apart is not for the policy.
      const mend = createHash('sha256').update(bug.mend).digest('hex');
      return { ref, prompt: source.prompt(bug, ref), info: { mend } };
    },
    taskCount: (split, level) => source.taskCount(split, level),
    ...(source.demonstrate && {
      demonstrate: (task: Task, index: number) => source.demonstrate!(source.bug(task.ref), task, index),
    }),
    prepare: async () => {
      // Found and tried once; where there is none, what is missing is said before anything runs.
      source.prepare?.();
      await openSandbox();
    },
    needs: () => source.needs(),
    sessions: fold<State>({
      // It waits for its turn, and for tests in a sandbox: what they may take is counted there.
      endSeconds: null,
      open: ({ ref }, { id }) => ({ id, patch: '', task: { ...ref } }),
      async act(state, call, { signal }) {
        const bug = source.bug(state.task);
        const known = tools.find(({ tool }) => tool.name === call.name);
        if (known === undefined) throw new ToolRefusal(`there is no tool ${call.name}`);
        const done = await known.act(bug, patched(bug.tree, state.patch), call.arguments as never, signal);
        return { state: { ...state, patch: patchBetween(bug.tree, done.tree) }, did: done.text };
      },
      async end(state, _, signal) {
        const { mended, evidence } = await judgePatch(source.bug(state.task), state.patch, {
          id: state.id,
          signal,
        });
        return { reward: mended ? 1 : 0, info: { mended, evidence } };
      },
    }),
  });
}
