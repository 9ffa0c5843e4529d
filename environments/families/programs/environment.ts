import { RandomStream } from '../../../core/random.ts';
import type { MadeTaskRef } from '../../../core/refs.ts';
import { defineEnvironment } from '../../contract/environment.ts';
import type { Environment, FastVerifier, Task } from '../../contract/environment.ts';
import { formatVerifier } from '../../verifiers/format.ts';
import { checkProposal, fromJson, saidBy, solves, toJson } from './proposals.ts';
import { asked, askedForTask, asksForTask, generated, kindOf, taskCount, writeTask } from './tasks.ts';
import type { ProgramTask } from './tasks.ts';
import { thoughtOf } from './thoughts.ts';

/** References that a generated prompt for a proposal shows at most, and what an expert has at hand to propose. */
const MOST_REFERENCES = 6;

/** Programs of one expression, and tasks of them that a policy can make itself. */
export function programsEnvironment(): Environment {
  return defineEnvironment({
    name: 'programs',
    version: '2',
    levels: [1, 2, 3, 4, 5, 6],
    tools: [],
    verifiers: [solved(), formatVerifier()],
    task: (ref) => (asksForTask(ref.level) ? proposalTask(ref) : solverTask(ref)),
    taskCount,
    demonstrate: ({ ref, answer, info }, index) => ({
      turns: [
        asksForTask(ref.level)
          ? { answer: writeTask(unlikeReferences(ref, index)) }
          : { think: thoughtOf(kindOf(ref.level), fromJson(info!)), answer: answer! },
      ],
      weight: 1,
    }),
    proposals: { levels: { 4: 1, 5: 2, 6: 3 }, check: checkProposal },
  });
}

/** What is in `info` stays between the environment and its verifiers. */
const taskIn = ({ info }: Pick<Task, 'info'>): ProgramTask => fromJson(info!);

function solverTask(ref: MadeTaskRef): Task {
  const task = ref.made ? fromJson(ref.made[0]!) : generated(ref);
  return { ref, ...asked(kindOf(ref.level), task), info: toJson(task) };
}

const proposalTask = (ref: MadeTaskRef): Task => ({
  ref,
  prompt: askedForTask(kindOf(ref.level), referencesOf(ref)),
});

/** Those that are given; of a generated task some of the same split. */
function referencesOf(ref: MadeTaskRef): ProgramTask[] {
  if (ref.made) return ref.made.map(fromJson);
  const count = new RandomStream('programs', 'references', ref.split, ref.level, ref.index).int(
    0,
    MOST_REFERENCES,
  );
  return Array.from({ length: count }, (_, i) => generated(ref, 7 * (i + 1)));
}

/** What an expert proposes: a task that is none of the references. */
function unlikeReferences(ref: MadeTaskRef, index: number): ProgramTask {
  const shown = new Set(referencesOf(ref).map(writeTask));
  for (let past = 1 + (index % 997); ; past++) {
    const task = generated({ ...ref, split: 'train' }, past);
    if (!shown.has(writeTask(task))) return task;
  }
}

/** 1 where a task is solved, and where a proposal is one that can be kept. */
const solved = (): FastVerifier => ({
  name: 'solved',
  version: '1',
  tier: 'fast',
  cost: { seconds: 0, usd: 0 },
  async verify(candidate, { signal }) {
    const { task, answer } = candidate;
    const { level } = task.ref;
    if (!asksForTask(level)) {
      const isSolved = await solves(kindOf(level), taskIn(task), answer, signal);
      return { kind: 'score', score: isSolved ? 1 : 0, canonical: saidBy(kindOf(level), answer) ?? '' };
    }
    const proposed = await checkProposal(candidate, signal);
    const evidence = 'reason' in proposed ? proposed.reason : proposed.like;
    const isTask = proposed.kind === 'accepted' || proposed.kind === 'set-aside';
    return { kind: 'score', score: isTask ? 1 : 0, evidence };
  },
});
