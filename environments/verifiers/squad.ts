import type { FastVerifier } from '../contract/environment.ts';
import { comparedVerifier, theAnswer } from './compared.ts';
import type { Expected } from './compared.ts';

/** What Python's `str.split` splits at, as the evaluation does: `\s` has U+FEFF besides, and lacks U+001C to U+001F and U+0085. */
// oxlint-disable-next-line no-control-regex -- Python takes them for white space
const SPACE = /[\t-\r\u001C-\u0020\u0085\u00A0\u1680\u2000-\u200A\u2028\u2029\u202F\u205F\u3000]+/gu;

/**
 * What an answer says by the evaluation of SQuAD v1.1 (Rajpurkar et al. 2016): lower case, no ASCII punctuation, no
 * articles, white space collapsed; in this order.
 */
export const normalizeSquad = (text: string): string =>
  text
    .toLowerCase()
    .replace(/[!-/:-@[-`{-~]/gu, '')
    // As Python's \b, which knows letters beyond ASCII.
    .replace(/(?<![\p{L}\p{N}_])(?:a|an|the)(?![\p{L}\p{N}_])/gu, ' ')
    .replace(SPACE, ' ')
    .replace(/^ | $/gu, '');

/** F1 of the words that two texts have in common, each as often as both have it. */
export function squadF1Of(given: string, expected: string): number {
  const words = (text: string): string[] => normalizeSquad(text).split(' ').filter(Boolean);
  const [ours, theirs] = [words(given), words(expected)];
  const left = new Map<string, number>();
  for (const word of theirs) left.set(word, (left.get(word) ?? 0) + 1);
  let common = 0;
  for (const word of ours) {
    const times = left.get(word) ?? 0;
    if (times === 0) continue;
    left.set(word, times - 1);
    common++;
  }
  // The same as 2PR / (P + R). Without words on both sides there is nothing in common.
  return common === 0 ? 0 : (2 * common) / (ours.length + theirs.length);
}

/** 1 where the answer is one of those expected, 0 where it is none; abstains where none is expected. */
export const squadExactMatch = (expected: Expected = theAnswer): FastVerifier =>
  squadVerifier('squad-em', expected, (given, wanted) =>
    normalizeSquad(given) === normalizeSquad(wanted) ? 1 : 0,
  );

/** The best F1 with any of the answers expected; abstains where none is. */
export const squadF1 = (expected: Expected = theAnswer): FastVerifier =>
  squadVerifier('squad-f1', expected, squadF1Of);

const squadVerifier = (
  name: string,
  expected: Expected,
  score: (given: string, wanted: string) => number,
): FastVerifier =>
  comparedVerifier(name, '3', expected, normalizeSquad, (answer, wanted) => ({
    score: Math.max(...wanted.map((one) => score(answer, one))),
    expected: wanted.join(' or '),
  }));

/** What a wrong answer in the right form is worth to ReSearch. */
const FORM = 0.1;

/**
 * ReSearch's reward (Chen et al. 2025, arXiv 2503.19470): F1, or a tenth where that is 0 and every turn was a call or an
 * answer; 0 where one was malformed or there is no answer.
 */
export function researchReward(expected: Expected = theAnswer): FastVerifier {
  const f1 = squadF1(expected);
  return {
    ...f1,
    name: 'research',
    version: `${f1.version};1`,
    verify: async (candidate, context) => {
      const verdict = await f1.verify(candidate, context);
      if (verdict.kind === 'abstain') return verdict;
      const malformed = candidate.episode.turns.some(({ action }) => action.kind === 'malformed');
      const score = malformed || candidate.answer === null ? 0 : verdict.score || FORM;
      return { ...verdict, score };
    },
  };
}
