import { expect, test } from 'vitest';
import { answeredText } from '../../../cli/review-lines.ts';
import { whyInWords } from '../../../runs/overview/why-in-words.ts';

test('who has answered a review is said in the singular and in the plural', () => {
  expect(answeredText([], 1)).toBe('0 of 1 reviewer has answered');
  expect(answeredText(['yes'], 2)).toBe('1 of 2 reviewers have answered');
});

test.each([
  [1, '0 of 1 has answered'],
  [2, '0 of 2 have answered'],
])('so is what a run waits for of %i reviewers', (reviewers, text) => {
  const review = { id: 'verdict/x', verifier: 'expert', given: 0, reviewers, deadline: '2026-12-02' };
  expect(whyInWords({ kind: 'review', ...review }, 0)).toContain(text);
});
