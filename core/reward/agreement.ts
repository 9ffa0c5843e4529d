import type { AgreementRule } from '../../spec/sections/reward-rules.ts';
import { canonicalAnswer, isWhole } from './rule.ts';
import type { JudgedSample, RuleVerdict } from './rule.ts';

/**
 * Self-consistency as a reward without labels. `majority`: 1 for the answer that more samples of the task give than
 * any other (TTRL, Zuo et al. 2025, section 2.2); where two lead, or no answer comes twice, there is no label and
 * nothing is said. `share`: the part of the other samples that answer the same. No answer agrees with nobody.
 */
export function agreementScores(
  { by }: AgreementRule,
  samples: readonly JudgedSample[],
): (RuleVerdict | null)[] {
  const answers = samples.map((sample) => (isWhole(sample) ? canonicalAnswer(sample) : null));
  const votes = new Map<string, number>();
  for (const answer of answers) if (answer !== null) votes.set(answer, (votes.get(answer) ?? 0) + 1);
  const voters = samples.filter(isWhole).length;
  const most = Math.max(0, ...votes.values());
  const leaders = [...votes.values()].filter((count) => count === most).length;
  const decided = most > 1 && leaders === 1;
  return samples.map((sample, i) => {
    if (!isWhole(sample)) return null;
    const own = answers[i] === null ? 0 : votes.get(answers[i]!)!;
    const evidence = `${own} of ${voters} samples answer so`;
    if (by === 'share') {
      return { score: voters < 2 ? null : Math.max(0, own - 1) / (voters - 1), evidence };
    }
    if (!decided) return { score: null, evidence: 'no answer leads' };
    return { score: own === most ? 1 : 0, evidence };
  });
}
