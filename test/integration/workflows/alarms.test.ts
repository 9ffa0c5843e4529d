import { afterAll, beforeAll, expect, test } from 'vitest';
import { noBehaviour } from '../../../core/training/behaviour.ts';
import type { BehaviourCounts, StepFacts } from '../../../core/training/step-facts.ts';
import type { TrainRequest } from '../../../core/requests/learner.ts';
import type { StepFactsRequest } from '../../../core/requests/run.ts';
import { longStage, startStoppedStageLab } from '../../support/stopped-stage.ts';
import type { WorkflowLab } from '../../support/workflow-lab.ts';

// A stage that continues as new every few steps, and whose episodes repeat nine of ten calls from its first step on:
// that is named when five steps are known, and again twenty steps later.

const FIRST = 5;
const SECOND = 25;
const STOPPED_IN = 27;

const looping: BehaviourCounts = { ...noBehaviour(), episodes: 1, calls: { add: 10 }, repeatedCalls: 9 };

const rates = new Map<number, number>();
const facts: StepFacts[] = [];
let lab: WorkflowLab;
beforeAll(async () => {
  lab = await startStoppedStageLab(
    STOPPED_IN,
    () => ({ behaviour: looping }),
    ({ verifier, orchestrator, learner }) => ({
      verifier: {
        settleClimb: (request: Parameters<typeof verifier.settleClimb>[0]) => {
          const settled = verifier.settleClimb(request);
          return { ...settled, groups: settled.groups.map((group) => ({ ...group, behaviour: looping })) };
        },
      },
      orchestrator: {
        ...orchestrator,
        keepStepFacts: (request: StepFactsRequest) => void facts.push(request.facts),
      },
      learner: {
        trainStep: (request: TrainRequest) => {
          if (request.stage === 'rl') rates.set(request.stageStep, request.optimizer.learningRate);
          return learner.trainStep(request);
        },
      },
    }),
  );
}, 600_000);
afterAll(() => lab?.stop());

test('alarms are acted on, kept with their steps and shown, over all executions of a stage', async () => {
  const handle = await lab.runs.start('alarmed', longStage({ diagnosis: { loops: ['slow-down'] } }));
  await handle.result();

  const first = rates.get(1)!;
  const factors = [FIRST, FIRST + 1, SECOND, SECOND + 1].map((step) => rates.get(step)! / first);
  expect(factors).toEqual([1, 0.5, 0.5, 0.25]);

  const raised = facts.filter(({ stage: name, alarms }) => name === 'rl' && alarms.length > 0);
  expect(raised.map(({ stageStep, alarms }) => [stageStep, alarms[0]!.name, alarms[0]!.actions])).toEqual([
    [FIRST, 'loops', ['slow-down']],
    [SECOND, 'loops', ['slow-down']],
  ]);

  const { alarms } = await lab.runs.progress(handle, () => true);
  expect(alarms).toEqual(raised.map((step) => ({ stage: 'rl', ...step.alarms[0]! })));
});
