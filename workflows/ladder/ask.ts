import {
  condition,
  getExternalWorkflowHandle,
  isCancellation,
  log,
  uuid4,
  workflowInfo,
} from '@temporalio/workflow';
import { refuseAnswer } from '../../core/question.ts';
import type { Decided, Decision, OpenQuestion, Question } from '../../core/question.ts';
import { listen } from '../control/listen.ts';
import { decidedShape } from '../control/message-shapes.ts';
import { decided, questionAsked } from '../control/messages.ts';

interface Waiting {
  question: OpenQuestion;
  answer: Decision | null;
}

/** Questions of this workflow that wait for their answers; each workflow has modules of its own. */
const waiting = new Map<string, Waiting>();

/** The run that this workflow is a part of; null for a run itself, and for what belongs to none. */
export function runOfThis(): string | null {
  const { root, workflowId } = workflowInfo();
  return root === undefined || root.workflowId === workflowId ? null : root.workflowId;
}

/**
 * Asks the person who looks after a run, and waits for the answer. `announce` lets the run show the question; `stop` is
 * the answer where nobody is there to ask any more.
 */
export async function askPerson<D extends Decision>(
  question: Question<D>,
  announce: (question: OpenQuestion) => void | Promise<void> = notifyRun,
): Promise<D | 'stop'> {
  const one: Waiting = {
    question: { ...question, id: uuid4(), asker: workflowInfo().workflowId },
    answer: null,
  };
  const { id } = one.question;
  waiting.set(id, one);
  listen(decided, decidedShape, takeAnswer);
  try {
    await announce(one.question);
    await condition(() => one.answer !== null);
  } catch (error) {
    if (isCancellation(error)) throw error;
    log.warn('there is no run any more that could be asked', { reason: String(error) });
  } finally {
    waiting.delete(id);
  }
  // It is one of those that the question has.
  return (one.answer ?? 'stop') as D | 'stop';
}

/** Takes an answer to one of this workflow's questions; what answers none, or cannot be answered, is ignored. */
export function takeAnswer({ question, answer }: Decided): void {
  const one = waiting.get(question);
  if (one === undefined || refuseAnswer(one.question, answer) !== null) {
    log.warn('an answer to no open question was ignored', { question, answer });
    return;
  }
  one.answer ??= answer;
}

/** Answers all questions of this workflow with `stop`. */
export function stopAsking(): void {
  for (const one of waiting.values()) one.answer ??= 'stop';
}

async function notifyRun(question: OpenQuestion): Promise<void> {
  const run = runOfThis();
  if (run === null) throw new Error('this workflow belongs to no run');
  await getExternalWorkflowHandle(run).signal(questionAsked, question);
}
