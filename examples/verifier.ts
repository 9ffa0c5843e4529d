import type { FastVerifier } from '../environments/contract/environment.ts';

/** Partial credit: the part of the expected answer's letters that stand where they should. */
export const lettersInPlace: FastVerifier = {
  name: 'letters-in-place',
  // Change it whenever the same episode could get another score.
  version: '1',
  tier: 'fast',
  cost: { seconds: 0, usd: 0 },
  verify: ({ task, answer }) => {
    // What cannot be judged is no zero: an abstention keeps the episode out of statistics and loss.
    if (task.answer === undefined) return { kind: 'abstain', reason: 'the task has no expected answer' };
    const expected = task.answer.split('');
    const given = (answer ?? '').trim();
    const right = expected.filter((letter, i) => given[i] === letter).length;
    return {
      kind: 'score',
      score: right / Math.max(expected.length, given.length),
      evidence: `${right} of ${expected.length} letters in place`,
    };
  },
};
