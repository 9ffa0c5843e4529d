import { percent } from '../percent.ts';
import type { EvaluationResult } from '../requests/evaluation.ts';
import type { SupervisedStageSpec } from '../schema/stages/supervised.ts';
import { rate } from '../statistics/intervals.ts';
import { meanOf } from '../statistics/standardized.ts';
import { addHowSolved } from './how-solved.ts';

// When imitation is enough. What is imitated for longer than that is sampled ever more alike, and RL learns from
// differences between samples (Cui et al. 2025, arXiv 2505.22617).

/** How far one of the three is. `met`: below the bound for the loss, at or above it for the others. */
export interface Criterion {
  name: 'loss' | 'format' | 'diversity';
  /**
   * `loss`: by what part of itself the mean loss fell from the first half of the latest rounds to the second. `format`: share
   * of held-out samples without a malformed turn that came to an end. `diversity`: of the samples beyond the first of each
   * task, the share that differs from all before. null: not known yet, or nothing could be judged.
   */
  value: number | null;
  bound: number;
  met: boolean;
}

type Rule = NonNullable<SupervisedStageSpec['graduation']['enough']>;

/** `losses` are those of the latest rounds, oldest first. */
export function criteriaOf(
  rule: Rule,
  losses: readonly number[],
  { conduct = [], distinct }: Pick<EvaluationResult, 'conduct' | 'distinct'>,
): Criterion[] {
  const { lossFallBelow, rounds, formatAtLeast, distinctAtLeast } = rule;
  const fall = losses.length < rounds ? null : fallOf(losses.slice(-rounds));
  const { compliant, episodes } = addHowSolved(conduct);
  const format = episodes === 0 ? null : compliant / episodes;
  const diversity = distinct && distinct.trials > 0 ? rate(distinct) : null;
  const atLeast = (value: number | null, bound: number): boolean => value !== null && value >= bound;
  return [
    { name: 'loss', value: fall, bound: lossFallBelow, met: fall !== null && fall < lossFallBelow },
    { name: 'format', value: format, bound: formatAtLeast, met: atLeast(format, formatAtLeast) },
    { name: 'diversity', value: diversity, bound: distinctAtLeast, met: atLeast(diversity, distinctAtLeast) },
  ];
}

/** The one in the middle of an odd number is in neither half. */
function fallOf(losses: readonly number[]): number {
  const half = Math.floor(losses.length / 2);
  const [before, after] = [meanOf(losses.slice(0, half)), meanOf(losses.slice(-half))];
  return before === 0 ? 0 : (before - after) / Math.abs(before);
}

/** `format 87.5 %, at least 90.0 % wanted`. */
export function criterionInWords({ name, value, bound, met }: Criterion): string {
  const is = value === null ? 'not known yet' : percent(value);
  const what = name === 'loss' ? `loss falls by ${is}` : `${name} ${is}`;
  if (met) return what;
  return `${what}, ${name === 'loss' ? 'less than' : 'at least'} ${percent(bound)} wanted`;
}
