import type { AgreementRule } from '../schema/reward-rules.ts';
import { canonicalAnswer } from './rule.ts';
import type { JudgedSample, RuleVerdict } from './rule.ts';
import { countVotes } from './votes.ts';

/**
 * Self-consistency as a reward without labels. `majority`: 1 for the answer that more samples of the task give than
 * any other (TTRL, Zuo et al. 2025, section 2.2); where two lead, or no answer comes twice, there is no label and
 * nothing is said. `share`: the part of the other samples that answer the same. No answer agrees with nobody.
 */
export function agreementScores({ by }: AgreementRule, samples: readonly JudgedSample[]): RuleVerdict[] {
  const answers = samples.map(canonicalAnswer);
  const votes = countVotes(answers);
  return answers.map((answer) => {
    const own = answer === null ? 0 : votes.of.get(answer)!;
    const evidence = `${own} of ${samples.length} samples answer so`;
    if (by === 'share') {
      const others = samples.length - 1;
      return { score: others === 0 ? null : Math.max(0, own - 1) / others, evidence };
    }
    if (votes.label === null) return { score: null, evidence: 'no answer leads' };
    return { score: answer === votes.label ? 1 : 0, evidence };
  });
}
