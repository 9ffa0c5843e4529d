import type { EnsembleSpec } from '../schema/reward.ts';
import type { VerdictOfVerifier } from '../episode/reward.ts';
import { meanOf } from '../statistics/standardized.ts';

/**
 * The verdict of several verifiers that speak as one, so that what fools one of them is not paid (Coste et al. 2023): by
 * the `minimum` of their scores (worst-case optimization), or by `mean-deviation`: mean − `deviations` × their standard
 * deviation, where Coste et al. take off the variance; not below 0. Where a member abstains it abstains, too: by those
 * who are left it could only be worth more, and who makes the strict one silent would be paid for that.
 */
export function ensembleVerdict(
  { name, by, deviations }: EnsembleSpec,
  members: readonly VerdictOfVerifier[],
): VerdictOfVerifier {
  const named = members.map(({ verifier, version }) => `${verifier}@${version}`).join(', ');
  const version = `${by === 'minimum' ? 'minimum' : `mean - ${deviations} deviation`} of ${named}`;
  const verdicts = members.map(({ verifier, version, score }) => ({ verifier, version, score }));
  const silent = members.find(({ score }) => score === null);
  if (silent) {
    const evidence = `${silent.verifier}: ${silent.evidence ?? 'abstained'}`;
    return { verifier: name, version, score: null, members: verdicts, evidence };
  }
  const canonical = members.find((member) => member.canonical !== undefined)?.canonical;
  return {
    verifier: name,
    version,
    score: combined(
      by,
      deviations,
      verdicts.map(({ score }) => score!),
    ),
    members: verdicts,
    ...(canonical !== undefined && { canonical }),
  };
}

/** Of scores in [0, 1]; never more than the best of them. */
export function combined(by: EnsembleSpec['by'], deviations: number, scores: readonly number[]): number {
  const least = Math.min(...scores);
  if (by === 'minimum') return least;
  return Math.min(Math.max(...scores), Math.max(0, meanOf(scores) - deviations * disagreement(scores)));
}

/** The standard deviation of these verifiers, not of a population that they are drawn from. */
export function disagreement(scores: readonly number[]): number {
  const mean = meanOf(scores);
  return Math.sqrt(scores.reduce((sum, score) => sum + (score - mean) ** 2, 0) / scores.length);
}
