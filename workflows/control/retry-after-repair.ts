import { ApplicationFailure } from '@temporalio/workflow';
import { DAMAGE } from '../../core/damage.ts';
import { STOP } from '../../core/question.ts';
import type { Question } from '../../core/question.ts';
import { askPerson, runOfThis } from '../ladder/ask.ts';

/** Asks about damage; null where there is nobody who could be asked. */
export type AskAboutDamage = (question: Question<'continue' | 'stop'>) => Promise<'continue' | 'stop'>;

const askOwnRun = (): AskAboutDamage | null => (runOfThis() === null ? null : askPerson);

/**
 * Does something that reads the store. Where an object of it is damaged a person is asked, and when it is mended the work
 * is tried again, in its place: nothing that the run has done is lost. When the answer is to stop, and where there is
 * nobody to ask, the failure is thrown.
 */
export async function retryAfterRepair<T>(
  work: () => Promise<T>,
  asking: AskAboutDamage | null = askOwnRun(),
): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      const damage = damageOf(error);
      if (damage === null || asking === null) throw error;
      const question: Question<'continue' | 'stop'> = {
        reason: damage.message,
        answers: [
          { answer: 'continue', effect: 'try again, after you have put the object back as it was' },
          STOP,
        ],
      };
      if ((await asking(question)) === 'stop') throw error;
    }
  }
}

/** The damage to an object of the store that a failure comes from; null for any other failure. */
export function damageOf(error: unknown): ApplicationFailure | null {
  // It has causes of its own, so it is not the innermost.
  for (let at: unknown = error; at instanceof Error; at = at.cause) {
    if (at instanceof ApplicationFailure && isDamage(at.type)) return at;
  }
  return null;
}

const isDamage = (type: string | null | undefined): boolean =>
  type?.startsWith('gradus.store.') === true && DAMAGE.has(type.slice('gradus.store.'.length));
