import { describe, expect, test } from 'vitest';
import { majorityVote } from '../../../../../environments/verifiers/judge/majority.ts';

const votes = (...scores: number[]) => scores.map((score) => ({ score, reason: '' }));

describe('a majority of judges', () => {
  test('is more than half of those asked, not of those who answered', () => {
    expect(majorityVote(votes(1, 1, 0), 3, 0)).toMatchObject({ score: 1 });
    expect(majorityVote(votes(1, 1), 3, 0)).toMatchObject({ score: 1 });
    expect(majorityVote(votes(1), 3, 0)).toBeNull();
    expect(majorityVote(votes(1, 1, 0, 0), 5, 0)).toBeNull();
    expect(majorityVote(votes(0, 0.5, 1), 3, 0)).toBeNull();
    expect(majorityVote([], 1, 0)).toBeNull();
  });

  test('does not depend on the order of the votes', () => {
    const all = [votes(0, 1, 1), votes(1, 0, 1), votes(1, 1, 0)].map((some) => majorityVote(some, 3, 0));
    expect(new Set(all.map((opinion) => JSON.stringify([opinion?.score, opinion?.uncertainty]))).size).toBe(
      1,
    );
  });

  test('shares an opinion within the distance that was allowed, and takes its mean', () => {
    expect(majorityVote(votes(0.6, 0.7, 0.1), 3, 0.1)?.score).toBeCloseTo(0.65, 12);
    expect(majorityVote(votes(0.6, 0.7, 0.1), 3, 0.05)).toBeNull();
  });

  test('is less certain with fewer votes and with every one against it', () => {
    const uncertainty = (some: number[], asked: number) =>
      majorityVote(votes(...some), asked, 0)!.uncertainty;
    expect(uncertainty([1], 1)).toBeCloseTo(0.354, 3);
    expect(uncertainty([1, 1, 1], 3)).toBeCloseTo(0.25, 12);
    expect(uncertainty([1, 1, 1, 1, 1], 5)).toBeCloseTo(0.204, 3);
    expect(uncertainty([1, 1, 0], 3)).toBeGreaterThan(uncertainty([1, 1, 0.5], 3));
    expect(uncertainty([1, 1, 0.5], 3)).toBeGreaterThan(uncertainty([1, 1], 3));
  });
});
