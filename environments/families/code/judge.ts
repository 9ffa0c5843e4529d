import { runFunction, type CallEnd } from '../../sandbox/webassembly/function-run.ts';
import type { CodeTask } from './levels.ts';
import { isSame, passedByConstant, textOf, type Test } from './problem.ts';

/** What a task's functions are called. */
const NAME = 'f';

/** What hidden tests say of an answer. Nothing in it is from the tests, or from what the answer made of them. */
export interface Judgement {
  /** Why there is no function to test; null where there is one. */
  compileError: string | null;
  /** Tests that ended in an error, and those that passed. */
  errors: number;
  passed: number;
  tests: number;
  /** How many the best constant passes. */
  constant: number;
}

/** The last fenced block of an answer, or all of it. */
export const programIn = (answer: string): string =>
  [...answer.matchAll(/```[\w-]*\n([^]*?)```/gu)].at(-1)?.[1] ?? answer;

/** The function of `answer` on the hidden tests. */
export async function judge(
  { hidden }: CodeTask,
  answer: string | null,
  signal: AbortSignal,
): Promise<Judgement> {
  const ran = await runFunction(
    { source: programIn(answer ?? ''), name: NAME, calls: hidden.map(({ given }) => [given]) },
    signal,
  );
  const unjudged = { errors: 0, passed: 0, tests: hidden.length, constant: passedByConstant(hidden) };
  if (ran.kind === 'compile-error') return { ...unjudged, compileError: ran.message };
  return {
    ...unjudged,
    compileError: null,
    errors: ran.results.filter(({ kind }) => kind === 'error').length,
    passed: ran.results.filter((end, i) => isPassed(end, hidden[i]!)).length,
  };
}

/** What `run_code` says of a program: what each example came to that it fails, and how many are right. */
export async function tryOut({ visible }: CodeTask, code: string, signal: AbortSignal): Promise<string> {
  const ran = await runFunction(
    { source: programIn(code), name: NAME, calls: visible.map(({ given }) => [given]) },
    signal,
  );
  if (ran.kind === 'compile-error') return ran.message;
  const failed = visible.flatMap((test, i) => {
    const end = ran.results[i]!;
    return isPassed(end, test) ? [] : [`f(${textOf(test.given)}) ${becameOf(end)}, not ${textOf(test.want)}`];
  });
  return [...failed, rightOf(visible.length - failed.length, visible.length)].join('\n');
}

export const rightOf = (right: number, all: number): string => `${right} of ${all} right`;

const isPassed = (end: CallEnd, { want }: Test): boolean => end.kind === 'value' && isSame(end.value, want);

function becameOf(end: CallEnd): string {
  if (end.kind === 'value') return `is ${textOf(end.value).slice(0, 200)}`;
  return end.kind === 'error' ? `ends in ${end.message}` : 'is no number, text, truth or list of them';
}
