/** What a person can answer to a question of a run. */
export const DECISIONS = ['continue', 'more-rounds', 'advance', 'rollback', 'stop'] as const;
export type Decision = (typeof DECISIONS)[number];

/** Something that a run waits for a person on: why it asks, what can be answered, and what each answer does. */
export interface Question<D extends Decision = Decision> {
  reason: string;
  answers: { answer: D; effect: string }[];
}

/** A question that has been asked. An answer names it, so that none is taken for the answer to another one. */
export interface OpenQuestion extends Question {
  id: string;
  /** The workflow that waits for the answer. */
  asker: string;
}

/** The answer to an open question, on its way to the workflow that asked. */
export interface Decided {
  question: string;
  answer: Decision;
}

/** Why something is no answer to a question, with those that are; null where it is one. */
export function refuseAnswer({ answers }: Question, given: unknown): string | null {
  if (answers.some(({ answer }) => answer === given)) return null;
  const lines = answers.map(({ answer, effect }) => `\n  "${answer}": ${effect}`);
  return `${JSON.stringify(given) ?? 'nothing'} is no answer to this question; choose one of${lines.join('')}`;
}

/** Why an answer to the question of this id, as the first of those that are open, is none; null where it is one. */
export function refuseLate(open: OpenQuestion, named: unknown): string | null {
  if (named === undefined || named === open.id) return null;
  const given = JSON.stringify(named);
  return `${given} is not the question that is open, which is "${open.id}": ${open.reason}. Look at \`progress\` before you answer`;
}

/** Ends the run; every question has it. */
export const STOP = { answer: 'stop', effect: 'end the run with its checkpoint' } as const;

/** Thrown out of the middle of a step in which a person was asked, and answered that the run shall end. */
export class StopAnswered extends Error {}

/** For `catch`: whatever is no answer of a person is thrown on. */
export function stopOrThrow(error: unknown): 'stop' {
  if (error instanceof StopAnswered) return 'stop';
  throw error;
}
