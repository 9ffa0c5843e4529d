import { GradusError, messageOf } from '../errors.ts';
import { extensionOf } from '../extensions/registry.ts';
import type { OwnRule } from '../schema/reward-rules.ts';
import type { JudgedSample, RuleVerdict } from './rule.ts';

/**
 * What a rule of the project says of the samples of one task. Throws GradusError('spec', 'extension') for one that is not
 * known here, and GradusError('verifier', 'reward-rule') where what it says is no score.
 */
export function ownRuleScores(
  { name, options }: Pick<OwnRule, 'name' | 'options'>,
  samples: readonly JudgedSample[],
): RuleVerdict[] {
  const own = extensionOf('reward-rule', name);
  const broken = (why: string, cause?: unknown) =>
    new GradusError(
      'verifier',
      'reward-rule',
      `the reward rule "${name}" of the project cannot be used: ${why}`,
      {
        cause,
      },
    );
  let found: readonly RuleVerdict[];
  try {
    // A list of its own: one that sorts it would pay others.
    found = own.scores([...samples], own.options.parse(options));
  } catch (error) {
    throw broken(`its scores() threw: ${messageOf(error)}`, error);
  }
  if (!Array.isArray(found) || found.length !== samples.length)
    throw broken(`its scores() must give one verdict for each of ${samples.length} samples`);
  return found.map((verdict: Partial<RuleVerdict> | null, i) => {
    const { score, evidence } = verdict ?? {};
    const isScore = score === null || (typeof score === 'number' && score >= 0 && score <= 1);
    if (!isScore) throw broken(`its score of sample ${i} is ${score}: give a number in [0, 1], or null`);
    return { score, evidence: evidence ?? '' };
  });
}
