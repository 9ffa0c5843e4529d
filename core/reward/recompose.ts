import { canonicalJson } from '../json/canonical-json.ts';
import { isRewarded, LEARNABILITY } from '../episode/outcome.ts';
import type { Outcome, RewardComponent, RewardedOutcome } from '../episode/outcome.ts';
import type { Episode } from '../episode/episode.ts';
import { composeReward } from '../episode/reward.ts';
import type { VerdictOfVerifier } from '../episode/reward.ts';
import type { RewardRule } from '../schema/reward-rules.ts';
import type { RewardSpec } from '../schema/reward.ts';
import { ensembleVerdict } from './ensemble.ts';
import { ruleName, ruleVerdicts } from './rules.ts';

/**
 * What an episode would have come to under another reward of the same verifiers, by what they have said of it: nobody is
 * asked again. What is composed anew is what the new reward says otherwise; whatever else was said stands. An episode that
 * has no reward keeps none, for what was said of it besides is not kept. A proposal keeps its own, which goes by its solver.
 *
 * Of rules, those that read one sample alone are computed anew where their constants differ. Those that compare samples
 * are not: what answers come down to is not kept with an episode.
 */
export function recomposed(
  outcome: Outcome,
  episode: Episode,
  { from, to }: { from: RewardSpec; to: RewardSpec },
): Outcome {
  if (!isRewarded(outcome) || componentOf(outcome, LEARNABILITY)) return outcome;
  const verdicts = to.components.flatMap(({ verifier }) => {
    const verdict = componentOf(outcome, verifier);
    return verdict ? [ensembleAnew(verdict, verifier, from, to)] : [];
  });
  const rules = (to.rules ?? []).flatMap((rule) => {
    const verdict = componentOf(outcome, ruleName(rule));
    // It speaks of some episodes only, and of this one it has not.
    if (!verdict) return [];
    const was = (from.rules ?? []).find((other) => ruleName(other) === ruleName(rule));
    return was && sameConstants(was, rule) ? [verdict] : ruleVerdicts([rule], [{ episode, verdicts }])[0]!;
  });
  const composed = composeReward(to, [...verdicts, ...rules]);
  if (composed.kind === 'abstained' || outcome.kind === 'scored') return composed;
  return { ...composed, kind: 'truncated', limit: outcome.limit };
}

function componentOf({ components }: RewardedOutcome, name: string): VerdictOfVerifier | undefined {
  const component = components.find(({ verifier }) => verifier === name);
  return component && withoutContribution(component);
}

function withoutContribution(component: RewardComponent): VerdictOfVerifier {
  const { contribution: _, ...verdict } = component;
  return verdict;
}

function ensembleAnew(
  verdict: VerdictOfVerifier,
  name: string,
  from: RewardSpec,
  to: RewardSpec,
): VerdictOfVerifier {
  const [was, is] = [from, to].map(({ ensembles = [] }) => ensembles.find((one) => one.name === name));
  const same = is === undefined || (is.by === was?.by && is.deviations === was.deviations);
  return same || verdict.members === undefined ? verdict : ensembleVerdict(is, verdict.members);
}

/** Weight and gate apart, which say nothing of its score. */
function sameConstants(one: RewardRule, other: RewardRule): boolean {
  const constants = (rule: RewardRule): string => canonicalJson({ ...rule, weight: 0, gatedBy: null });
  return constants(one) === constants(other);
}
