import type { FastVerifier } from '../contract.ts';

/** Numbers with an optional sign, thousands separators (all of one kind) and a decimal point. */
const NUMBER = /^([+-]?)(\d{1,3}(?:([,'_ ])\d{3}(?:\3\d{3})*)|\d+)?(?:\.(\d*))?$/u;

/**
 * What an answer says, however it is written: white space collapsed, any minus and space of Unicode the plain one,
 * and of a number only its value (no thousands separators, no zeros at the ends, no plus, no minus zero).
 */
export function normalizeAnswer(answer: string): string {
  const text = answer
    .normalize('NFKC')
    .replace(/[\u2212\u2010-\u2015\uFE63\uFF0D]/gu, '-')
    .replace(/\s+/gu, ' ')
    .trim();
  const match = NUMBER.exec(text.replace(/^([+-]) /u, '$1'));
  if (match === null || (match[2] === undefined && !match[4])) return text;
  const whole = (match[2] ?? '').replace(/\D/gu, '').replace(/^0+(?=\d)/u, '') || '0';
  const fraction = (match[4] ?? '').replace(/0+$/u, '');
  const value = fraction === '' ? whole : `${whole}.${fraction}`;
  return match[1] === '-' && value !== '0' ? `-${value}` : value;
}

/** 1 when the answer says what the task expects, 0 when it does not or there is none; abstains on a task without an expected answer. */
export function exactMatch(): FastVerifier {
  return {
    name: 'exact-match',
    version: '1',
    tier: 'fast',
    cost: { seconds: 0, usd: 0 },
    verify: ({ task, answer }) => {
      if (task.answer === undefined)
        return { kind: 'abstain', reason: 'the task has no expected answer to compare with' };
      if (answer === null) return { kind: 'score', score: 0, evidence: 'no answer' };
      const canonical = normalizeAnswer(answer);
      const score = canonical === normalizeAnswer(task.answer) ? 1 : 0;
      return { kind: 'score', score, canonical, evidence: `${answer} for ${task.answer}` };
    },
  };
}
