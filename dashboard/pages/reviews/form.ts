import { GradusError } from '../../../core/errors.ts';
import type { Opinion, Withdrawal } from '../../../core/ladder/opinions.ts';

/** Longest of what a reviewer writes, characters: it passes through the history, and becomes evidence. */
export const LONGEST_COMMENT = 4000;
export const LONGEST_NAME = 100;

type Form = Record<string, unknown>;

function textIn(form: Form, field: string, longest: number): string {
  const value = form[field];
  const text = typeof value === 'string' ? value.trim() : '';
  if (text.length <= longest) return text;
  throw new GradusError('spec', 'invalid-form', `${field}: at most ${longest} characters are taken`);
}

export function withdrawalIn(form: Form): Omit<Withdrawal, 'all'> {
  const reason = textIn(form, 'reason', LONGEST_COMMENT);
  return { reviewer: textIn(form, 'reviewer', LONGEST_NAME), ...(reason !== '' && { reason }) };
}

export function opinionIn(form: Form): Opinion {
  const score = textIn(form, 'score', 40);
  const comment = textIn(form, 'comment', LONGEST_COMMENT);
  return {
    reviewer: textIn(form, 'reviewer', LONGEST_NAME),
    // What is no number the review itself refuses.
    score: score === '' ? Number.NaN : Number(score.replace(',', '.')),
    ...(comment !== '' && { comment }),
  };
}
