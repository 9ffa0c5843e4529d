import { getExternalWorkflowHandle, isCancellation, log, workflowInfo } from '@temporalio/workflow';
import { refuseAnswer, refuseLate } from '../../core/question.ts';
import type { Decision, OpenQuestion } from '../../core/question.ts';
import { decided } from '../control/messages.ts';
import { takeAnswer } from '../ladder/ask.ts';

/** What workflows of a run wait to hear from a person, in the order in which they asked. The first one is shown. */
export class Questions {
  open: OpenQuestion[];

  constructor(open: OpenQuestion[]) {
    this.open = open;
  }

  get first(): OpenQuestion | null {
    return this.open[0] ?? null;
  }

  add(question: OpenQuestion): void {
    this.open.push(question);
  }

  isAskedBy(asker: string | null): boolean {
    return this.open.some((one) => one.asker === asker);
  }

  /** Those of all others are forgotten. */
  keepOf(asker: string | null): void {
    this.open = this.open.filter((one) => one.asker === asker);
  }

  /** Why the first one is not answered so, or null. `named` is the question that the answer names, where it names one. */
  refuse(answer: unknown, named: unknown): string | null {
    const { first } = this;
    if (first === null) return 'the run waits for no decision';
    return refuseLate(first, named) ?? refuseAnswer(first, answer);
  }

  /** Answers the first one, and all that ask the same: who met the same damage does. */
  async answer(answer: Decision): Promise<void> {
    const { reason } = this.first!;
    const same = this.open.filter((one) => one.reason === reason);
    this.open = this.open.filter((one) => one.reason !== reason);
    await Promise.all(same.map((question) => tellAnswer(question, answer)));
  }

  /** Answers all with `stop`. */
  stop(): Promise<void>[] {
    const { open } = this;
    this.open = [];
    return open.map((question) => tellAnswer(question, 'stop'));
  }
}

/** Tells an answer to the workflow that asked. */
export async function tellAnswer({ id, asker }: OpenQuestion, answer: Decision): Promise<void> {
  const message = { question: id, answer };
  if (asker === workflowInfo().workflowId) return takeAnswer(message);
  try {
    await getExternalWorkflowHandle(asker).signal(decided, message);
  } catch (error) {
    if (isCancellation(error)) throw error;
    log.info('who asked has ended', { asker, reason: String(error) });
  }
}
