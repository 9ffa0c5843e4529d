import { RandomStream } from '../../../core/random.ts';
import type { MadeTaskRef, Split } from '../../../core/refs.ts';
import { dealTasks, splitOfProblem } from '../../contract/generated-tasks.ts';
import { numbersIn, readProgram, shapeOf, valueOf, writeProgram } from './program.ts';
import type { Expression } from './program.ts';

// Three kinds of task of one program (Absolute Zero, section 3.2): what it gives for an input, which input it gives an output
// for, and which program it is that gives these outputs for these inputs.

export type Kind = 'deduction' | 'abduction' | 'induction';
export const KINDS: readonly Kind[] = ['deduction', 'abduction', 'induction'];

/** Level 1, 2 and 3 are the kinds; 4, 5 and 6 ask for a task of one. */
export const kindOf = (level: number): Kind => KINDS[(level - 1) % KINDS.length]!;
const INDUCTION = 1 + KINDS.indexOf('induction');
export const asksForTask = (level: number): boolean => level > KINDS.length;

/** What a program is tried with, and told apart by from all others. */
export const PROBES: readonly number[] = Array.from({ length: 19 }, (_, i) => i - 9);
/** Inputs that an induction shows. */
export const SHOWN = 3;
/** Of a program that is generated: how many tasks of a kind are made of it. */
const TASKS_OF_EACH = 8;

/** A task: a program with an input, or with those that are shown. */
export interface ProgramTask {
  program: Expression;
  inputs: readonly number[];
}

/** What a program gives for all probes: two that give the same are the same problem. */
export const behaviourOf = (program: Expression): string =>
  PROBES.map((x) => String(valueOf(program, x) + 0)).join(' ');

const FAMILY = 'programs';
const SHARES = { train: 0.7, heldout: 0.15, test: 0.15 };

/** The split that a program is of, for whatever task. */
export const splitOf = (behaviour: string): Split => splitOfProblem(FAMILY, behaviour, SHARES);

/** Why a task is too easy to be one, or null. What it asks for may not be written in its prompt. */
export function tooEasy(kind: Kind, { program, inputs }: ProgramTask): string | null {
  const outputs = PROBES.map((x) => valueOf(program, x));
  if (outputs.every((value) => value === outputs[0])) return 'its result does not depend on x';
  if (outputs.every((value, i) => value === PROBES[i])) return 'it gives back what it is given';
  const [x] = inputs;
  const output = valueOf(program, x!);
  const written = numbersIn(program);
  if (kind === 'deduction' && [x, ...written].includes(output)) return 'its answer is written in its prompt';
  if (kind === 'abduction' && [output, ...written].some((one) => valueOf(program, one) === output))
    return 'its answer is written in its prompt';
  if (kind === 'induction' && new Set(inputs.map((one) => valueOf(program, one))).size < 2)
    return 'its examples are all the same';
  return null;
}

/** The user's message, and the answer that an expert gives. */
export function asked(kind: Kind, { program, inputs }: ProgramTask): { prompt: string; answer: string } {
  const text = writeProgram(program);
  const [x] = inputs;
  const output = String(valueOf(program, x!));
  switch (kind) {
    case 'deduction':
      return { prompt: `Run ${text} for ${x}.`, answer: output };
    case 'abduction':
      return { prompt: `Find x: ${text} is ${output}.`, answer: String(x) };
    default: {
      const examples = inputs.map((one) => `f(${one}) is ${valueOf(program, one)}`);
      return { prompt: `Find f: ${examples.join(', ')}.`, answer: text };
    }
  }
}

/** As a proposer writes it. */
export const writeTask = ({ program, inputs }: ProgramTask): string =>
  `${writeProgram(program)} for ${inputs.join(', ')}`;

const WHAT: Record<Kind, string> = {
  deduction: 'to run',
  abduction: 'to invert',
  induction: 'to find',
};

export const askedForTask = (kind: Kind, references: readonly ProgramTask[]): string =>
  [`Propose a program ${WHAT[kind]}.`, ...references.map(writeTask)].join('\n');

const range = (low: number, high: number): number[] =>
  Array.from({ length: high - low + 1 }, (_, i) => low + i);

/** Programs of one or two operations, which the generated tasks are of. */
function somePrograms(): Expression[] {
  const written = [
    ...range(1, 9).flatMap((a) => [`x + ${a}`, `x - ${a}`, `${a} - x`, `x * x + ${a}`, `x * x - ${a}`]),
    ...range(2, 5).flatMap((b) => [
      `x * ${b}`,
      ...range(1, 9).flatMap((a) => [
        `x * ${b} + ${a}`,
        `x * ${b} - ${a}`,
        `(x + ${a}) * ${b}`,
        `(x - ${a}) * ${b}`,
        `${a} - x * ${b}`,
        `x % ${b} + ${a}`,
      ]),
    ]),
  ];
  return written.map((text) => readProgram(`x => ${text}`) as Expression);
}

/** The examples that an induction shows, in whatever order: who is asked sees nothing else of its program. */
export const examplesOf = ({ program, inputs }: ProgramTask): string =>
  inputs
    .toSorted((a, b) => a - b)
    .map((x) => `${x} ${valueOf(program, x) + 0}`)
    .join(', ');

/** Tasks of a kind that a program is good for, in an order of its own. */
function tasksOf(kind: Kind, program: Expression): ProgramTask[] {
  const random = new RandomStream(FAMILY, kind, writeProgram(program));
  const probes = random.shuffle([...PROBES]);
  // Of an induction 0 and 1 are shown, which say most of a line.
  const inputs =
    kind === 'induction'
      ? probes.filter((x) => x !== 0 && x !== 1).map((x) => [0, 1, x])
      : probes.map((x) => [x]);
  const good = inputs
    .map((some): ProgramTask => ({ program, inputs: some }))
    .filter((task) => tooEasy(kind, task) === null);
  return [...new Map(good.map((task) => [asked(kind, task).prompt, task])).values()];
}

/** Those whose prompt no program of another behaviour has: else a split would ask what another one answers otherwise. */
function unlikeOthers<One extends { behaviour: string; tasks: ProgramTask[] }>(
  kind: Kind,
  all: readonly One[],
): One[] {
  const promptOf = (task: ProgramTask): string => asked(kind, task).prompt;
  const behaviours = new Map<string, Set<string>>();
  for (const { behaviour, tasks } of all)
    for (const task of tasks) {
      const known = behaviours.get(promptOf(task)) ?? new Set();
      behaviours.set(promptOf(task), known.add(behaviour));
    }
  return all.map((one) => ({
    ...one,
    tasks: one.tasks.filter((task) => behaviours.get(promptOf(task))!.size === 1).slice(0, TASKS_OF_EACH),
  }));
}

const dealt = new Map(
  KINDS.map((kind) => {
    const good = somePrograms().map((program) => ({
      behaviour: behaviourOf(program),
      tasks: tasksOf(kind, program),
    }));
    const all = unlikeOthers(kind, good).filter(({ tasks }) => tasks.length === TASKS_OF_EACH);
    return [kind, dealTasks(FAMILY, all, ({ behaviour }) => behaviour, { shares: SHARES })];
  }),
);

export const taskCount = (split: Split, level: number): number =>
  dealt.get(kindOf(level))!.count(split) * TASKS_OF_EACH;

/** The generated task at these coordinates; `past` counts on from there. */
export function generated({ split, level, index }: MadeTaskRef, past = 0): ProgramTask {
  const kind = kindOf(level);
  const programs = dealt.get(kind)!;
  const at = index + past;
  const { tasks } = programs.at({ split, index: at });
  return tasks[Math.floor(at / programs.count(split)) % tasks.length]!;
}

const heldOutExamples = new Set(
  (['heldout', 'test'] as const).flatMap((split) =>
    Array.from({ length: taskCount(split, INDUCTION) }, (_, index) =>
      examplesOf(generated({ environment: FAMILY, split, level: INDUCTION, index })),
    ),
  ),
);

/** Whether an evaluation asks for a program by these examples, of whichever program they are here. */
export const asksWhatIsHeldOut = (kind: Kind, task: ProgramTask): boolean =>
  kind === 'induction' && heldOutExamples.has(examplesOf(task));

/** Two programs of one shape resemble each other. */
export const likeOf = (kind: Kind, program: Expression): string => `${kind} ${shapeOf(program)}`;
