export interface Vote {
  score: number;
  reason: string;
}

interface Opinion {
  score: number;
  uncertainty: number;
  /** The votes that share it. */
  votes: Vote[];
}

/**
 * What more than half of those asked think, who count as asked though they said nothing; null if there is no such
 * opinion. Votes share one if their scores lie within `agreeWithin`, and its score is their mean.
 *
 * The uncertainty is the root mean square of how far all votes are from that score, with one imagined vote half the
 * scale away: 0.35 for a single vote, 0.25 for three and 0.20 for five that agree. Judges that are one model agree
 * more easily than judges that are right, so unanimity is no certainty.
 */
export function majorityVote(votes: readonly Vote[], asked: number, agreeWithin: number): Opinion | null {
  const sorted = votes.toSorted((a, b) => a.score - b.score);
  let largest: Vote[] = [];
  for (const [i, lowest] of sorted.entries()) {
    // A hair's breadth for what decimal fractions lose.
    const near = sorted.slice(i).filter(({ score }) => score - lowest.score <= agreeWithin + 1e-9);
    if (near.length > largest.length) largest = near;
  }
  if (largest.length * 2 <= asked) return null;
  const score = largest.reduce((sum, vote) => sum + vote.score, 0) / largest.length;
  const squares = votes.reduce((sum, vote) => sum + (vote.score - score) ** 2, 0.5 ** 2);
  return { score, uncertainty: Math.sqrt(squares / (votes.length + 1)), votes: largest };
}
