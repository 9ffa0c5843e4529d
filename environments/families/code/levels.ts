import { RandomStream } from '../../../core/random.ts';
import type { TaskRef } from '../../../core/refs.ts';
import { drawTask } from '../../contract/generated-tasks.ts';
import type { Data } from '../../sandbox/webassembly/function-run.ts';
import { oneOfAList, someLists, twoOfAList } from './lists.ts';
import { oneOperation, someNumbers, twoOperations } from './numbers.ts';
import { testsOf, textOf, type Problem, type Tests } from './problem.ts';
import { ofAText, someTexts } from './texts.ts';

/** What functions take. */
interface Kind {
  /** The argument, and what it is where that is not plain. */
  name: string;
  said: string;
  some(marks: readonly (number | string)[], random: RandomStream): readonly Data[];
  /** What to think of, for whoever tries again. */
  edges: string;
}

const NUMBER: Kind = {
  name: 'x',
  said: 'f(x)',
  some: someNumbers,
  edges: 'Think of 0, of negative numbers, and of the numbers beside each limit.',
};
const LIST: Kind = {
  name: 'xs',
  said: 'f(xs) for a list of whole numbers',
  some: someLists,
  edges:
    'Think of the empty list, of 0, of negative numbers, of numbers of more digits, of repeats, and of the numbers beside each limit.',
};
const TEXT: Kind = {
  name: 's',
  said: 'f(s) for a text',
  some: someTexts,
  edges: 'Think of the empty text, of short ones, of letters that come twice, and of two spaces in a row.',
};

interface Level {
  level: number;
  kind: Kind;
  draw(random: RandomStream): Problem;
  /** Examples in the task. */
  shown: number;
}

export const LEVELS: readonly Level[] = [
  { level: 1, kind: NUMBER, draw: oneOperation, shown: 2 },
  { level: 2, kind: NUMBER, draw: twoOperations, shown: 2 },
  { level: 3, kind: LIST, draw: oneOfAList, shown: 3 },
  { level: 4, kind: TEXT, draw: ofAText, shown: 3 },
  { level: 5, kind: LIST, draw: twoOfAList, shown: 3 },
];

/** By what functions of a kind are told apart: the same for all. */
const PROBES = new Map(
  [NUMBER, LIST, TEXT].map((kind) => [
    kind,
    kind.some(kind === NUMBER ? [300] : [' ', 7, 12], new RandomStream('code', 'probes', kind.name)),
  ]),
);

/** A function to write, with its tests. */
export interface CodeTask extends Tests {
  prompt: string;
  problem: Problem;
  edges: string;
}

const levelOf = (level: number): Level => LEVELS.find((one) => one.level === level)!;

const MOST_KEPT = 2_000;
const kept = new Map<string, CodeTask>();

/**
 * The task at (split, level, index). What a function does says which split it is of, at any level and however it is written.
 * Kept for a while: prompt, tool, verifiers and expert ask for it.
 */
export function codeTask(ref: TaskRef): CodeTask {
  const key = `${ref.split} ${ref.level} ${ref.index}`;
  let task = kept.get(key);
  if (task === undefined) {
    task = drawn(ref);
    if (kept.size >= MOST_KEPT) kept.delete(kept.keys().next().value!);
    kept.set(key, task);
  }
  return task;
}

function drawn(ref: TaskRef): CodeTask {
  const { kind, shown, ...level } = levelOf(ref.level);
  const { problem, tests } = drawTask(
    ref,
    (random) => {
      const problem = level.draw(random);
      const tests = testsOf(problem, kind.some(problem.marks, random), shown, random);
      return tests && { problem, tests };
    },
    ({ problem }) =>
      kind.name +
      PROBES.get(kind)!
        .map((given) => textOf(problem.of(given)))
        .join(';'),
    { family: 'code' },
  );
  const examples = tests.visible.map(({ given, want }) => `f(${textOf(given)}) is ${textOf(want)}`);
  const prompt = `Write ${kind.said}: ${problem.said}. ${examples.join(', ')}.`;
  return { prompt, problem, edges: kind.edges, ...tests };
}
