import type { TierAnswer } from '../tier-contract.ts';

/** What one person says of a subject. */
export interface Opinion {
  reviewer: string;
  /** In [0, 1]; from 0.5 on it is a yes. */
  score: number;
  comment?: string;
}

/** Takes back what a reviewer has said, or the whole review. */
export interface Withdrawal {
  /** Whose opinion it is, or who takes the review back. */
  reviewer: string;
  reason?: string;
  /** The review is closed without a verdict, whoever has said what. */
  all?: boolean;
}

/** Why an opinion is refused, or null. Nothing that is said after so many reviewers has a say in the verdict. */
export function refuseOpinion(
  opinion: Opinion,
  before: readonly Opinion[],
  reviewers: number,
): string | null {
  const { reviewer, score } = opinion;
  if (typeof reviewer !== 'string' || reviewer.trim() === '')
    return 'name the reviewer: "reviewer" is missing';
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

/** Why nothing can be taken back so, or null. */
export function refuseWithdrawal(
  withdrawal: Partial<Withdrawal> | undefined,
  before: readonly Opinion[],
  reviewers: number,
): string | null {
  const { reviewer, reason, all } = withdrawal ?? {};
  if (typeof reviewer !== 'string' || reviewer.trim() === '')
    return 'name the reviewer whose verdict is withdrawn, or who closes the review: "reviewer" is missing';
  if (reason !== undefined && typeof reason !== 'string') return '"reason" must be a text';
  if (all !== undefined && typeof all !== 'boolean') return '"all" must be true or false';
  if (isDecided(before, reviewers)) return 'this review is decided: its verdict is being written down';
  if (all || before.some((other) => other.reviewer === reviewer)) return null;
  const given = before.map((other) => other.reviewer).join(', ');
  return `${reviewer} has given no verdict here${given === '' ? '' : `; given were those of ${given}`}. To close the whole review, give "all": true`;
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

/** For those who come too late. */
export const closedBecause = (verdict: TierAnswer): string =>
  verdict.kind === 'abstained'
    ? `this review is closed without a verdict: ${verdict.reason}`
    : `this review is closed: ${verdict.kind === 'scored' ? `the verdict is ${verdict.score}` : 'there is a verdict'}`;
