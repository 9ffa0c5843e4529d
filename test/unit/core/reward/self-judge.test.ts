import { describe, expect, test } from 'vitest';
import {
  correlationOf,
  isUnjudged,
  judged,
  judgePrompt,
  readPoints,
  RUBRIC,
} from '../../../../core/reward/self-judge.ts';
import type { AgreementSums } from '../../../../core/reward/self-judge.ts';

describe('points', () => {
  test.each([
    ['Score: 0', 0],
    ['It is right.\n\nScore: 5', 5],
    ['It is right.\r\n  Score: 3  \n', 3],
    ['The score is fine, I think.\nScore: 2', 2],
  ])('%j gives %d', (text, points) => expect(readPoints(text)).toBe(points));

  test.each([
    '',
    'Score: 6',
    'Score: -1',
    'Score: 4.5',
    'Score: 5/5',
    'Score: five',
    'Score:5',
    'score: 5',
    '**Score: 5**',
    'I give it Score: 5',
    'Score: 5\nIt is good.',
    // Which of them is the judge's, and which does it quote?
    'The attempt says:\nScore: 5\nBut it is wrong.\nScore: 1',
    '> Score: 5\nScore: 1',
    'Score: 5\nScore: 5',
    'Score: ５',
  ])('%j gives none', (text) => expect(readPoints(text)).toBeNull());
});

describe('a verdict', () => {
  const said = (...texts: (string | null)[]) => judged(texts.map((text) => ({ text, tokens: 7 })));

  test('is the mean of the samples that give points, out of five', () => {
    expect(said('Score: 5', 'Score: 2', 'no idea', null)).toEqual({
      score: 0.7,
      uncertainty: expect.closeTo(0.3, 12) as number,
      steps: [],
      members: [1, 0.4],
      judge: { samples: 4, tokens: 28, words: ['Score: 5', 'Score: 2', 'no idea', ''] },
    });
  });

  test('of no such sample is none, and what it cost is kept', () => {
    const none = said('no idea', null);
    expect(isUnjudged(none)).toBe(true);
    expect(none).toMatchObject({
      unjudged: 'none of 2 samples of the judge ends with a score',
      judge: { samples: 2, tokens: 14 },
    });
  });

  test('keeps the end of what was said, where the points are', () => {
    expect(said(`${'long '.repeat(1000)}\nScore: 4`)).toMatchObject({
      score: 0.8,
      judge: { words: [expect.stringMatching(/^.{491,}\nScore: 4$/) as string] },
    });
  });
});

test('a prompt has rubric, attempt between its marks, and what to end with', () => {
  const lines = judgePrompt(RUBRIC, '{"task":"2+2?"}', 'abc').split('\n');
  const at = lines.indexOf('DATA abc');
  expect(lines.slice(at, at + 3)).toEqual(['DATA abc', '{"task":"2+2?"}', 'END OF DATA abc']);
  expect(lines.at(-1)).toContain('from 0 to 5');
});

describe('the correlation', () => {
  const of = (pairs: readonly (readonly [number, number])[]): number | null => {
    const sum = (value: (score: number, verified: number) => number): number =>
      pairs.reduce((all, [score, verified]) => all + value(score, verified), 0);
    const sums: AgreementSums = {
      score: sum((score) => score),
      scoreSquared: sum((score) => score ** 2),
      verified: sum((_, verified) => verified),
      verifiedSquared: sum((_, verified) => verified ** 2),
      product: sum((score, verified) => score * verified),
    };
    return correlationOf(pairs.length, sums);
  };

  test('is 1 of a judge that follows the verifier, −1 of one that is turned round', () => {
    expect(
      of([
        [0.2, 0],
        [0.8, 1],
        [0.2, 0],
      ]),
    ).toBeCloseTo(1, 12);
    expect(
      of([
        [0.9, 0],
        [0.1, 1],
      ]),
    ).toBeCloseTo(-1, 12);
  });

  test('is what the formula says of the pairs', () => {
    // Covariance 0.03, deviations √0.025 and 0.4 ….
    const pairs = [
      [0.2, 0],
      [0.4, 1],
      [0.6, 0],
      [0.6, 1],
    ] as const;
    const mean = (at: 0 | 1) => pairs.reduce((sum, pair) => sum + pair[at], 0) / 4;
    const [x, y] = [mean(0), mean(1)];
    const covariance = pairs.reduce((sum, [a, b]) => sum + (a - x) * (b - y), 0);
    const spread = (at: 0 | 1, around: number) =>
      Math.sqrt(pairs.reduce((sum, pair) => sum + (pair[at] - around) ** 2, 0));
    expect(of(pairs)).toBeCloseTo(covariance / (spread(0, x) * spread(1, y)), 12);
  });

  test('of a judge that gives all the same, or a verifier that does, is none', () => {
    expect(of(Array.from({ length: 1000 }, (_, i) => [0.1 + 0.2, i % 2] as const))).toBeNull();
    expect(
      of([
        [0.2, 1],
        [0.8, 1],
      ]),
    ).toBeNull();
    expect(of([])).toBeNull();
  });
});
