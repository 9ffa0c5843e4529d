/** What one person says of a subject. */
export interface Opinion {
  reviewer: string;
  /** In [0, 1]; from 0.5 on it is a yes. */
  score: number;
  comment?: string;
}

/** Why an opinion is refused, or null. Nothing that is said after so many reviewers has a say in the verdict. */
export function refuseOpinion(
  opinion: Opinion,
  before: readonly Opinion[],
  reviewers: number,
): string | null {
  const { reviewer, score } = opinion;
  if (typeof reviewer !== 'string' || reviewer.trim() === '') return 'say who reviews: "reviewer" is missing';
  if (typeof score !== 'number' || !(score >= 0 && score <= 1)) {
    return `the score ${JSON.stringify(score)} is not in [0, 1]: 0 is a clear no, 1 a clear yes`;
  }
  if (opinion.comment !== undefined && typeof opinion.comment !== 'string') return '"comment" must be a text';
  if (before.some((other) => other.reviewer === reviewer)) {
    return `${reviewer} has given a verdict already; each reviewer has one`;
  }
  if (isDecided(before, reviewers)) return 'this review is decided: its verdict is being written down';
  return null;
}

/** Nothing that anybody could add would count: one side has its majority, or all have spoken. */
export const isDecided = (opinions: readonly Opinion[], reviewers: number): boolean =>
  majority(opinions, reviewers) !== null || opinions.length >= reviewers;

/** The mean score of the side that more than half of all reviewers are on; null while there is none. */
export function majority(opinions: readonly Opinion[], reviewers: number): number | null {
  for (const side of [true, false]) {
    const scores = opinions.map(({ score }) => score).filter((score) => score >= 0.5 === side);
    if (scores.length * 2 > reviewers) return scores.reduce((sum, score) => sum + score, 0) / scores.length;
  }
  return null;
}
