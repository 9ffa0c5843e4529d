import { percent } from '../core/percent.ts';
import { rate } from '../core/statistics/intervals.ts';
import type { Interval } from '../core/statistics/intervals.ts';
import type { ArmTally } from '../core/requests/verification.ts';
import { toolFailuresOf, total } from '../core/training/stage-policy.ts';
import { criterionInWords } from '../core/training/enough.ts';
import { decimals } from '../core/decimals.ts';
import { shortened } from './shortened.ts';
import type { Progress } from '../workflows/control/messages.ts';

const BAR_WIDTH = 24;
const NARROW_BAR = 10;

export const interval = ({ low, high }: Interval): string => `${percent(low)} – ${percent(high)}`;

function bar(part: number, width = BAR_WIDTH): string {
  const full = Math.round(Math.min(1, Math.max(0, part)) * width);
  return '█'.repeat(full) + '░'.repeat(width - full);
}

/** `L1 98.0 %  L2 91.0 %` for the arms of one environment, with its name before where there are several. */
function showArms(arms: readonly ArmTally[]): string {
  const several = new Set(arms.map(({ arm }) => arm.environment)).size > 1;
  return arms
    .map(
      (tally) => `${several ? `${tally.arm.environment} ` : ''}L${tally.arm.level} ${percent(rate(tally))}`,
    )
    .join('  ');
}

/** From this part of groups without contrast on the line of a run, and its report, say so. */
export const MOSTLY = 0.5;

/** Steps for which an alarm stays in the line. */
const NEW = 5;

/**
 * A run at a glance, one line: stage, step, bar, what is tried again and why, held-out success, reward, entropy, gap of
 * log-probs, tokens/s. Of that what fits into `columns`.
 */
export function progressLine(progress: Progress, columns = Infinity): string {
  const { step, heldOut } = progress;
  const status = progress.status === 'running' ? '' : ` [${progress.status}]`;
  const retried = progress.retrying?.at(-1);
  const retry = retried && `${retried.activity}: attempt ${retried.attempts}, because ${retried.lastFailure}`;
  const beside = (text: string): string | null =>
    retry === undefined ? null : shortened(retry, Math.max(LEAST_OF_A_REASON, columns - text.length - 2));
  if (!step) {
    const phase = `${progress.phase}${status} …`;
    return [phase, beside(phase)].filter((text) => text !== null).join('  ');
  }
  const seconds = step.seconds.rollout;
  const last = progress.alarms?.at(-1);
  const alarm = last?.stage === step.stage && step.stageStep - last.stageStep < NEW ? last : undefined;
  const gap = step.metrics?.logprobGapMax ?? null;
  const entropy = step.entropy ?? step.metrics?.entropy ?? null;
  // A warm start samples nothing to learn from: what the learner measures is of demonstrations.
  const on = step.entropy == null ? ' on demonstrations' : '';
  const width = columns < ROOM_FOR_ARMS ? NARROW_BAR : BAR_WIDTH;
  const where = `${`${step.stage}${status}`.padEnd(12)}  ${bar(step.stageStep / step.maxSteps, width)} ${String(step.stageStep).padStart(3)}/${step.maxSteps}`;
  // What a narrow line can do without has a larger number.
  const fields: readonly (readonly [importance: number, text: string | null])[] = [
    [0, where],
    // Cut rather than left out: a run that stands still says why.
    [0, beside(where)],
    [1, heldOutText(heldOut, columns >= ROOM_FOR_ARMS)],
    [
      3,
      heldOut && toolFailuresOf(heldOut.arms) > 0
        ? `${toolFailuresOf(heldOut.arms)} of ${total(heldOut.arms).trials} failed at a tool`
        : null,
    ],
    [4, step.criteria === undefined ? null : step.criteria.map(criterionInWords).join('; ')],
    [5, step.meanReward === null ? null : `reward ${decimals(step.meanReward, 3)}`],
    [6, entropy === null ? null : `entropy${on} ${entropy.toFixed(3)}`],
    [3, (step.equalGroups ?? 0) < MOSTLY ? null : `σ = 0 in ${percent(step.equalGroups!)} of groups`],
    [8, gap === null ? null : `gap ${gap.toExponential(0)}`],
    [2, alarm === undefined ? null : `alarm ${alarm.name} at step ${alarm.stageStep}`],
    [7, seconds > 0 ? `${(step.sampledTokens / seconds / 1000).toFixed(1)}k tokens/s` : null],
  ];
  return asManyAsFit(fields, columns);
}

/** Characters of what is tried again and why, however narrow the line is. */
const LEAST_OF_A_REASON = 40;

/** Narrower lines have a short bar, and the mean of all levels alone. */
const ROOM_FOR_ARMS = 120;

function heldOutText(heldOut: Progress['heldOut'], withArms: boolean): string {
  if (!heldOut) return 'held-out –';
  const all = `held-out ${percent(rate(total(heldOut.arms)))}`;
  return withArms ? `${all} (${showArms(heldOut.arms)})` : all;
}

/** In their order; where not all fit, the least important are left out whole. */
function asManyAsFit(
  fields: readonly (readonly [importance: number, text: string | null])[],
  columns: number,
): string {
  const there = fields.flatMap(([importance, text]) => (text === null ? [] : [{ importance, text }]));
  const line = (most: number): string =>
    there.flatMap(({ importance, text }) => (importance <= most ? [text] : [])).join('  ');
  const most = [...new Set(there.map(({ importance }) => importance))].toSorted((a, b) => b - a);
  return line(most.find((one) => line(one).length <= columns) ?? 0);
}
