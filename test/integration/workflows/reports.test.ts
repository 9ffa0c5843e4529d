import { afterAll, beforeAll, expect, test } from 'vitest';
import { historiesFrom } from '../../../bench/histories.ts';
import type { Incident } from '../../../core/episode/incidents.ts';
import type { VerifyRequest } from '../../../core/requests.ts';
import { stop } from '../../../workflows/messages.ts';
import { hollowActivities } from '../../support/hollow-activities.ts';
import { ladderSpec } from '../../support/ladder-installation.ts';
import { startWorkflowLab } from '../../support/workflow-lab.ts';
import type { WorkflowLab } from '../../support/workflow-lab.ts';

// A stage of ten thousand steps reports every tenth of them, and continues as new every few.

const STOPPED_IN = 7;
const incidentOf = (part: string, count = 1): Incident => ({
  environment: 'calculator-ladder',
  file: 'words.ts',
  function: `task() of ${part}`,
  kind: 'threw',
  count,
  message: 'no dictionary',
});

let lab: WorkflowLab;
beforeAll(async () => {
  lab = await startWorkflowLab(
    ({ runs }) => {
      const { verifier, ...others } = hollowActivities(runs);
      const verifyGroup = async ({ group }: VerifyRequest) => {
        if (group.stage === 'rl' && group.step === STOPPED_IN) {
          await runs.client.workflow.getHandle(group.run).signal(stop);
        }
        return { ...(await verifier.verifyGroup(group as never)), incidents: [incidentOf(group.stage)] };
      };
      return { ...others, verifier: { ...verifier, verifyGroup } };
    },
    { dynamicConfig: { 'limit.historyCount.suggestContinueAsNew': 60 } },
  );
}, 120_000);
afterAll(() => lab?.stop());

test('what a stage has not reported yet outlives its history, and is reported when it ends', async () => {
  const spec = ladderSpec([{ verifier: 'near', passAtLeast: 0.5 }], { groupsPerStep: 1 });
  const [warmStart, stage] = spec.stages;
  const handle = await lab.runs.start('long', {
    ...spec,
    verification: { ...spec.verification, evaluateBy: 'near' },
    stages: [
      warmStart,
      {
        ...stage,
        maxSteps: 10_000,
        graduation: { ...stage.graduation, successAtLeast: 0.5, everySteps: 1000 },
      },
    ],
  });
  const { end, stages } = await handle.result();
  const steps = stages[1]!.steps;
  expect(end).toBe('stopped');
  expect(steps).toBeGreaterThanOrEqual(STOPPED_IN);
  let executions = 0;
  for await (const { type } of historiesFrom(lab.runs.client, {
    workflowId: 'long',
    runId: (await handle.describe()).runId,
  })) {
    if (type === 'stage') executions++;
  }
  // Several steps each, so that the first one's report is not what tells of the others.
  expect(executions).toBeGreaterThan(1);
  expect(executions).toBeLessThan(steps);

  const { step, incidents } = await lab.runs.progress(handle, () => true);
  expect(step!.stageStep).toBe(steps);
  expect(incidents).toEqual([incidentOf('rl', steps), incidentOf('warm-start'), incidentOf('before')]);
});
