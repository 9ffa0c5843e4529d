import { rate } from '../core/statistics/intervals.ts';
import type { Interval } from '../core/statistics/intervals.ts';
import type { ArmTally } from '../core/requests.ts';
import { toolFailuresOf, total } from '../core/training/stage-policy.ts';
import type { Progress } from '../workflows/messages.ts';

const BAR_WIDTH = 24;

export const percent = (x: number): string => `${(100 * x).toFixed(1)} %`;

export const interval = ({ low, high }: Interval): string => `${percent(low)} – ${percent(high)}`;

export function bar(part: number, width = BAR_WIDTH): string {
  const full = Math.round(Math.min(1, Math.max(0, part)) * width);
  return '█'.repeat(full) + '░'.repeat(width - full);
}

/** `L1 98.0 %  L2 91.0 %` for the arms of one environment, with its name before where there are several. */
export function showArms(arms: readonly ArmTally[]): string {
  const several = new Set(arms.map(({ arm }) => arm.environment)).size > 1;
  return arms
    .map(
      (tally) => `${several ? `${tally.arm.environment} ` : ''}L${tally.arm.level} ${percent(rate(tally))}`,
    )
    .join('  ');
}

/** A run at a glance, one line: stage, step, bar, held-out success, reward, entropy, gap of log-probs, tokens/s. */
export function progressLine(progress: Progress): string {
  const { step, heldOut } = progress;
  const status = progress.status === 'running' ? '' : ` [${progress.status}]`;
  if (!step) return `${progress.phase}${status} …`;
  const seconds = step.seconds.rollout;
  const alarm = progress.alarms?.at(-1);
  const gap = step.metrics?.logprobGapMax ?? null;
  const entropy = step.entropy ?? step.metrics?.entropy ?? null;
  const fields = [
    `${step.stage}${status}`.padEnd(12),
    `${bar(step.stageStep / step.maxSteps)} ${String(step.stageStep).padStart(3)}/${step.maxSteps}`,
    heldOut ? `held-out ${percent(rate(total(heldOut.arms)))} (${showArms(heldOut.arms)})` : 'held-out –',
    heldOut && toolFailuresOf(heldOut.arms) > 0
      ? `${toolFailuresOf(heldOut.arms)} of ${total(heldOut.arms).trials} failed at a tool`
      : null,
    step.meanReward === null ? null : `reward ${step.meanReward.toFixed(3)}`,
    entropy === null ? null : `entropy ${entropy.toFixed(3)}`,
    gap === null ? null : `gap ${gap.toExponential(0)}`,
    alarm === undefined || alarm.stage !== step.stage
      ? null
      : `alarm ${alarm.name} at step ${alarm.stageStep}`,
    seconds > 0 ? `${(step.sampledTokens / seconds / 1000).toFixed(1)}k tokens/s` : null,
  ];
  return fields.filter((field) => field !== null).join('  ');
}
