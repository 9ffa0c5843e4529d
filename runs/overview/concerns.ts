import { percent } from '../../core/percent.ts';
import { counted } from '../../core/counted.ts';
import { AGAIN } from '../../core/diagnosis/diagnose.ts';
import { WINDOW } from '../../core/diagnosis/series.ts';
import { rate } from '../../core/statistics/intervals.ts';
import { measuredShare } from '../../core/statistics/measured.ts';
import type { CurriculumSpec } from '../../core/schema/curriculum-spec.ts';
import { total } from '../../core/training/stage-policy.ts';
import type { StepFacts } from '../../core/training/step-facts.ts';

// A run that has completed may have learnt nothing: what speaks against its result is said wherever it is listed.

/** What somebody should look at before they trust a run. */
export type Concern =
  /** It stands after the last step that is known. */
  | { kind: 'alarm'; name: string; stage: string }
  /** Held-out success of the last stage is below what the stage should have reached, by the whole of its interval. */
  | { kind: 'below-goal'; stage: string; success: number; high: number; goal: number };

const CONFIDENCE = 0.95;

type Alarming = Pick<StepFacts, 'stage' | 'stageStep' | 'standing'> & {
  alarms: readonly { name: string }[];
};

/**
 * Alarms that stand after the last of some steps. Facts without `standing` are of an older version: what was raised within
 * the steps after which an alarm that holds is raised again counts as standing.
 */
export function standingAlarms(steps: readonly Alarming[]): Concern[] {
  const last = steps.at(-1);
  if (last === undefined) return [];
  const { stage } = last;
  const lately = steps.filter((one) => one.stage === stage && last.stageStep - one.stageStep < AGAIN);
  const names = last.standing ?? lately.flatMap(({ alarms }) => alarms.map(({ name }) => name));
  return [...new Set(names)].map((name) => ({ kind: 'alarm', name, stage }));
}

/** Whether a run that has completed came as far as its last stage was to bring it. */
export function belowGoal(
  last: Pick<StepFacts, 'stage' | 'decision'>,
  heldOut: StepFacts['heldOut'],
  spec: Pick<CurriculumSpec, 'stages'> | null,
): Concern[] {
  const { stage } = last;
  const goals = spec?.stages.find(({ name }) => name === stage)?.graduation;
  const goal = goals && 'successAtLeast' in goals ? goals.successAtLeast : undefined;
  const tasks = total(heldOut?.arms ?? []);
  if (goal === undefined || tasks.trials === 0 || last.decision.kind === 'graduate') return [];
  const { success, high } = measuredShare(tasks, CONFIDENCE);
  return high >= goal ? [] : [{ kind: 'below-goal', stage, success, high, goal }];
}

export const concernText = (concern: Concern): string =>
  concern.kind === 'alarm'
    ? `alarm ${concern.name} stands in ${concern.stage}`
    : `held-out success ${percent(concern.success)}, goal of ${concern.stage} ${percent(concern.goal)}`;

/** Groups of the latest steps of a stage whose samples all earned the same: nothing is learnt from how they differ. */
export interface EqualGroups {
  stage: string;
  /** Steps that are counted, at most eight. */
  steps: number;
  equal: number;
  groups: number;
  /** Of new tasks of these steps; null where none could be judged. */
  success: number | null;
}

/** Of the last stage that rolled out; null where it has compared nothing. */
export function equalGroupsLately(steps: readonly StepFacts[]): EqualGroups | null {
  const last = steps.findLast(({ rollout }) => rollout !== null);
  if (last === undefined) return null;
  const lately = steps
    .filter(({ stage, rollout }) => stage === last.stage && rollout !== null)
    .slice(-WINDOW);
  const counts = lately.map(countsOf);
  const sum = (of: 'equal' | 'groups'): number => counts.reduce((all, one) => all + one[of], 0);
  const tasks = total(lately.flatMap(({ rollout }) => rollout!.arms));
  if (sum('groups') === 0) return null;
  return {
    stage: last.stage,
    steps: lately.length,
    equal: sum('equal'),
    groups: sum('groups'),
    success: tasks.trials === 0 ? null : rate(tasks),
  };
}

/** Of trees as they are when they have grown, where that is known. */
const countsOf = ({ rollout, batch }: StepFacts): { equal: number; groups: number } =>
  batch?.trees !== undefined
    ? { equal: batch.degenerateGroups, groups: batch.trees }
    : { equal: rollout!.equalRewards, groups: rollout!.rewardGroups };

/** `95.0 % of 240 groups of the last 8 steps of rl (…)`, in a sentence. */
export const equalGroupsText = ({ stage, steps, equal, groups, success }: EqualGroups): string =>
  `${percent(equal / groups)} of the ${counted(groups, 'group')} of the last ${steps === 1 ? 'step' : `${steps} steps`} of ${stage} have equal rewards (σ = 0)${success === null ? '' : `; ${percent(success)} of new tasks succeed`}`;
