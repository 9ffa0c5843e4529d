import { afterAll, beforeAll, expect, test } from 'vitest';
import { noBehaviour } from '../../../core/training/behaviour.ts';
import type { BehaviourCounts, StepFacts } from '../../../core/training/step-facts.ts';
import type { StepFactsRequest, TrainRequest, VerifyRequest } from '../../../core/requests.ts';
import { stop } from '../../../workflows/messages.ts';
import { hollowActivities } from '../../support/hollow-activities.ts';
import { ladderSpec } from '../../support/ladder-installation.ts';
import { startWorkflowLab } from '../../support/workflow-lab.ts';
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
  lab = await startWorkflowLab(
    ({ runs }) => {
      const hollow = hollowActivities(runs);
      const verifyGroup = async ({ group }: VerifyRequest) => {
        if (group.stage === 'rl' && group.step === STOPPED_IN) {
          await runs.client.workflow.getHandle(group.run).signal(stop);
        }
        return { ...(await hollow.verifier.verifyGroup(group as never)), behaviour: looping };
      };
      return {
        ...hollow,
        verifier: {
          ...hollow.verifier,
          verifyGroup,
          settleClimb: (request: Parameters<typeof hollow.verifier.settleClimb>[0]) => {
            const settled = hollow.verifier.settleClimb(request);
            return { ...settled, groups: settled.groups.map((group) => ({ ...group, behaviour: looping })) };
          },
        },
        orchestrator: {
          ...hollow.orchestrator,
          keepStepFacts: (request: StepFactsRequest) => void facts.push(request.facts),
        },
        learner: {
          trainStep: (request: TrainRequest) => {
            if (request.stage === 'rl') rates.set(request.stageStep, request.optimizer.learningRate);
            return hollow.learner.trainStep(request);
          },
        },
      };
    },
    { dynamicConfig: { 'limit.historyCount.suggestContinueAsNew': 60 } },
  );
}, 120_000);
afterAll(() => lab?.stop());

test('alarms are acted on, kept with their steps and shown, over all executions of a stage', async () => {
  const spec = ladderSpec([{ verifier: 'near', passAtLeast: 0.5 }], { groupsPerStep: 1 });
  const [warmStart, stage] = spec.stages;
  const handle = await lab.runs.start('alarmed', {
    ...spec,
    verification: { ...spec.verification, evaluateBy: 'near' },
    stages: [
      warmStart,
      {
        ...stage,
        maxSteps: 10_000,
        graduation: { ...stage.graduation, successAtLeast: 0.5, everySteps: 1000 },
        diagnosis: { loops: ['slow-down'] },
      },
    ],
  });
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
