import { plainCharacters } from '../../core/plain-characters.ts';
import type { FastVerifier } from '../contract/environment.ts';
import { comparedVerifier, theAnswer } from './compared.ts';

/**
 * Numbers with an optional sign, thousands separators (all of one kind) and a decimal point. `0,123` has none: nobody
 * writes so what is 123, and half the world what is 0.123.
 */
const NUMBER = /^([+-]?) ?([1-9]\d{0,2}(?:([,'_ ])\d{3}(?:\3\d{3})*)|\d+)?(?:\.(\d*))?$/u;

/** Characters of an answer that is read: of combining marks and of zeros the time for one grows with its square. */
const LONGEST_READ = 10_000;

/**
 * What an answer says, however it is written: characters in their plain form (`plainCharacters`), white space collapsed,
 * any minus and space of Unicode the plain one, and of a number only its value (no thousands separators, no zeros at the
 * ends, no plus, no minus zero). Lines are no thousands: a number stands in one of them. A very long one says its letters.
 */
export function normalizeAnswer(answer: string): string {
  if (answer.length > LONGEST_READ) return answer;
  const text = plainCharacters(answer)
    .replace(/[\u2212\u2010-\u2015\uFE63]/gu, '-')
    .replace(/[\t\p{Zs}]/gu, ' ')
    .trim();
  const match = NUMBER.exec(text);
  if (match === null || (match[2] === undefined && !match[4])) return text.replace(/\s+/gu, ' ');
  const whole = (match[2] ?? '').replace(/\D/gu, '').replace(/^0+(?=\d)/u, '') || '0';
  const fraction = (match[4] ?? '').replace(/0+$/u, '');
  const value = fraction === '' ? whole : `${whole}.${fraction}`;
  return match[1] === '-' && value !== '0' ? `-${value}` : value;
}

/** 1 when the answer says what the task expects, 0 when it does not or there is none; abstains on a task without an expected answer. */
export const exactMatch = (): FastVerifier =>
  comparedVerifier('exact-match', '4', theAnswer, normalizeAnswer, (answer, [wanted]) => ({
    score: normalizeAnswer(answer) === normalizeAnswer(wanted!) ? 1 : 0,
    expected: wanted!,
  }));
