import { expect, test } from 'vitest';
import {
  belowGoal,
  concernText,
  equalGroupsLately,
  equalGroupsText,
  standingAlarms,
} from '../../../../runs/overview/concerns.ts';
import { Status } from '../../../../dashboard/parts/status.tsx';
import type { HeededAlarm } from '../../../../core/diagnosis/act.ts';
import { summarize } from '../../../../core/training/evaluation.ts';
import { rolloutFacts } from '../../../../core/training/facts-of.ts';
import type { StepFacts } from '../../../../core/training/step-facts.ts';
import type { CurriculumSpec } from '../../../../core/schema/curriculum-spec.ts';
import { someHeldOut, someStep } from '../../../support/some-step.ts';

const spec = {
  stages: [{ kind: 'rl', name: 'rl', maxSteps: 40, graduation: { successAtLeast: 0.9 } }],
} as unknown as CurriculumSpec;
const alarm: HeededAlarm = { name: 'no-contrast', stageStep: 1, evidence: [], remedy: '', actions: [] };

test('a run that completed with alarms, or below its goal, is not green', () => {
  const last = someStep({ stageStep: 40, standing: ['no-contrast', 'loops'] });
  const concerns = [...standingAlarms([last]), ...belowGoal(last, someHeldOut(2, 100), spec)];
  expect(concerns.map(concernText)).toEqual([
    'alarm no-contrast stands in rl',
    'alarm loops stands in rl',
    'held-out success 2.0 %, goal of rl 90.0 %',
  ]);
  const html = (Status({ status: 'completed', concerns }) as { toString: () => string }).toString();
  expect(html).toContain('class="status completed concerned"');
  expect(html).toContain('goal of rl 90.0 %');
});

test('a run that graduated, or whose success may have reached its goal, has no concern', () => {
  const last = someStep({ stageStep: 40 });
  expect(standingAlarms([last])).toEqual([]);
  expect(belowGoal(last, someHeldOut(88, 100), spec)).toEqual([]);
  const graduated = { kind: 'graduate', reason: null, action: null, question: null };
  expect(belowGoal({ ...last, decision: graduated }, someHeldOut(80, 100), spec)).toEqual([]);
  // Of what was never measured, or without its spec, nothing is claimed.
  expect(belowGoal(last, someHeldOut(0, 0), spec)).toEqual([]);
  expect(belowGoal(last, someHeldOut(2, 100), null)).toEqual([]);
});

test('facts of an older version have the alarms that were raised lately in the last stage', () => {
  const steps = [
    someStep({ stage: 'first', stageStep: 9, alarms: [{ ...alarm, name: 'loops' }] }),
    someStep({ stageStep: 1, alarms: [{ ...alarm, name: 'echo-trap' }] }),
    someStep({ stageStep: 20, alarms: [alarm] }),
    someStep({ stageStep: 30 }),
  ];
  expect(standingAlarms(steps)).toEqual([{ kind: 'alarm', name: 'no-contrast', stage: 'rl' }]);
});

test('groups without contrast of the latest steps are added up, of the last stage that rolled out', () => {
  const step = (stage: string, stageStep: number, equalRewards: number): StepFacts =>
    someStep({
      stage,
      stageStep,
      rollout: {
        ...rolloutFacts(summarize([])),
        equalRewards,
        rewardGroups: 10,
        arms: [{ arm: { environment: 'calculator', level: 1 }, successes: 1, trials: 4 }],
      },
    });
  const steps = [
    step('old', 1, 0),
    ...Array.from({ length: 10 }, (_, i) => step('rl', i + 1, i < 2 ? 0 : 9)),
  ];
  const found = equalGroupsLately([...steps, someStep({ stage: 'later' })])!;
  expect(found).toEqual({ stage: 'rl', steps: 8, equal: 72, groups: 80, success: 0.25 });
  expect(equalGroupsText(found)).toBe(
    '90.0 % of the 80 groups of the last 8 steps of rl have equal rewards (σ = 0); 25.0 % of new tasks succeed',
  );
  expect(equalGroupsLately([someStep()])).toBeNull();
});
