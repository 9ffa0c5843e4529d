import type {
  AgreementRule,
  DiversityRule,
  OwnRule,
  RewardRule,
  WrittenRule,
} from '../schema/reward-rules.ts';
import type { VerdictOfVerifier } from '../episode/reward.ts';
import { agreementScores } from './agreement.ts';
import { confidenceScore } from './confidence.ts';
import { diversityScores } from './diversity.ts';
import { lengthScore } from './length.ts';
import { ownRuleScores } from './own.ts';
import { processScore } from './process.ts';
import type { JudgedSample, RuleVerdict } from './rule.ts';

/** What a rule is called among the components of a reward. */
export function ruleName(rule: WrittenRule): string {
  if (rule.kind === 'process') return `rule:process:${rule.verifier}`;
  return rule.kind === 'own' ? `rule:own:${rule.name}` : `rule:${rule.kind}`;
}

/** A length is taken off by; the other rules of Gradus pay. */
export function roleOfRule(rule: RewardRule): 'bonus' | 'penalty' {
  if (rule.kind === 'own') return rule.role;
  const { kind } = rule;
  return kind === 'linear-length' || kind === 'sigmoid-length' || kind === 'overlong' ? 'penalty' : 'bonus';
}

/** Rules that read what the other samples of the task did, too, or may. */
export const isOfGroup = ({ kind }: Pick<RewardRule, 'kind'>): boolean =>
  kind === 'agreement' || kind === 'diversity' || kind === 'own';

/** Rules that can stand in for an outcome that nobody knows. */
export const needsNoLabel = ({ kind }: RewardRule): boolean => kind === 'agreement' || kind === 'confidence';

/**
 * What the rules say of the samples of one task, as verdicts that are composed like those of verifiers. A pure function
 * of the samples, in any order.
 */
export function ruleVerdicts(
  rules: readonly RewardRule[],
  samples: readonly JudgedSample[],
): VerdictOfVerifier[][] {
  const verdicts = samples.map((): VerdictOfVerifier[] => []);
  for (const rule of rules) {
    const { weight: _, gatedBy: __, ...settings } = rule;
    const version = `1;${JSON.stringify(settings)}`;
    scoresOf(rule, samples).forEach((verdict, i) => {
      verdicts[i]!.push({ verifier: ruleName(rule), version, ...verdict });
    });
  }
  return verdicts;
}

function scoresOf(rule: RewardRule, samples: readonly JudgedSample[]): RuleVerdict[] {
  switch (rule.kind) {
    case 'agreement':
      return agreementScores(rule, samples);
    case 'diversity':
      return diversityScores(rule, samples);
    case 'own':
      return ownRuleScores(rule, samples);
    default:
      return samples.map((sample) => ownScore(rule, sample));
  }
}

function ownScore(
  rule: Exclude<RewardRule, AgreementRule | DiversityRule | OwnRule>,
  sample: JudgedSample,
): RuleVerdict {
  switch (rule.kind) {
    case 'confidence':
      return confidenceScore(sample);
    case 'process':
      return processScore(rule, sample);
    default:
      return lengthScore(rule, sample);
  }
}
