import { afterAll, beforeAll, expect, test } from 'vitest';
import { historiesFrom } from '../../support/histories.ts';
import type { Incident } from '../../../core/episode/incidents.ts';
import { longStage, startStoppedStageLab } from '../../support/stopped-stage.ts';
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
  lab = await startStoppedStageLab(
    STOPPED_IN,
    ({ stage }) => ({ incidents: [incidentOf(stage)] }),
    ({ orchestrator }) => ({
      orchestrator: {
        ...orchestrator,
        buildBatch: () => ({ ...orchestrator.buildBatch(), taughtTokens: 1 }),
      },
    }),
  );
}, 600_000);
afterAll(() => lab?.stop());

test('what a stage has not reported yet outlives its history, and is reported when it ends', async () => {
  const handle = await lab.runs.start('long', longStage());
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

  const { step, incidents, tokens } = await lab.runs.progress(handle, () => true);
  expect(step!.stageStep).toBe(steps);
  expect(tokens).toEqual({ rl: { sampled: steps, taught: steps } });
  expect(incidents).toEqual([incidentOf('rl', steps), incidentOf('warm-start'), incidentOf('before')]);
});
