/** Fewer votes make no majority that another one could be against: of labels of self-play. */
export const LEAST_VOTERS = 3;

/** What the answers of a task's samples come to as votes. */
export interface Votes {
  /** How many samples gave each answer. */
  of: ReadonlyMap<string, number>;
  /** Samples with an answer. */
  cast: number;
  /** Votes for the answer that most give; where several lead, for each of these. 0 where there is none. */
  most: number;
  /** The answer that more samples give than any other, and at least two; null where several lead, or none comes twice. */
  label: string | null;
}

/**
 * Counts answers, each as what it comes down to; null is no answer and no vote. A label never follows from the order of the
 * samples: where several answers lead, none is one (TTRL, Zuo et al. 2025, arXiv 2504.16084, section 2.2, leaves that open).
 */
export function countVotes(answers: readonly (string | null)[]): Votes {
  const of = new Map<string, number>();
  for (const answer of answers) if (answer !== null) of.set(answer, (of.get(answer) ?? 0) + 1);
  const most = Math.max(0, ...of.values());
  const leaders = [...of].filter(([, count]) => count === most);
  return {
    of,
    cast: answers.filter((answer) => answer !== null).length,
    most,
    label: most > 1 && leaders.length === 1 ? leaders[0]![0] : null,
  };
}
