import type { WorkflowUpdateFailedError } from '@temporalio/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Budget } from '../../../core/ladder/budget.ts';
import type { PlanRequest } from '../../../core/ladder/requests.ts';
import type { ChangeRequest, GroupResult, StepFactsRequest, VerifyRequest } from '../../../core/requests.ts';
import type { KeptChange, RunChange } from '../../../core/run-change.ts';
import type { StepFacts } from '../../../core/training/step-facts.ts';
import { change, changesMade } from '../../../workflows/messages.ts';
import { hollowActivities } from '../../support/hollow-activities.ts';
import { Gate, startWorkflowLab } from '../../support/workflow-lab.ts';
import type { WorkflowLab } from '../../support/workflow-lab.ts';
import { longStage } from '../../support/stopped-stage.ts';

// A run is changed in the middle of a step, and its stage continues as new every few steps.

const CHANGED_IN = 2;
const BUDGET = { count: 70, usd: 3 };
const changes: RunChange[] = [
  { budgets: { near: { count: 90, usd: 3 } }, maxSteps: { rl: 5000 }, reason: 'there is room' },
  { budgets: { near: { count: 70 } }, maxSteps: { rl: 9 } },
];

const opened = new Gate();
const kept: KeptChange[] = [];
const facts: StepFacts[] = [];
const planned = new Map<number, Budget>();

let lab: WorkflowLab;
beforeAll(async () => {
  lab = await startWorkflowLab(
    ({ runs }) => {
      const hollow = hollowActivities(runs);
      const verifyGroup = async ({ group }: VerifyRequest): Promise<GroupResult> => {
        const run = runs.client.workflow.getHandle(group.run);
        if (group.stage === 'rl' && group.step === CHANGED_IN && kept.length === 1) {
          for (const one of changes) await run.executeUpdate(change, { args: [one] });
          // What has no shape, and what is older than what is known, is no change.
          const stage = runs.client.workflow.getHandle(`${group.run}/rl`);
          await stage.signal('changesMade', { newest: 99, budgets: { near: 3 }, maxSteps: {} });
          await stage.signal(changesMade, { newest: 2, budgets: {}, maxSteps: { rl: 1 } });
        }
        return hollow.verifier.verifyGroup(group as never);
      };
      return {
        ...hollow,
        orchestrator: {
          ...hollow.orchestrator,
          openRun: async (request: Parameters<typeof hollow.orchestrator.openRun>[0]) => {
            await opened.opened;
            return hollow.orchestrator.openRun(request);
          },
          keepChange: ({ made }: ChangeRequest) => {
            kept.push(made);
            return made;
          },
          keepStepFacts: (request: StepFactsRequest) => void facts.push(request.facts),
        },
        verifier: {
          ...hollow.verifier,
          verifyGroup,
          planClimb: (request: PlanRequest) => {
            planned.set(request.steps.at(-1)!.step, request.budget);
            return hollow.verifier.planClimb();
          },
        },
      };
    },
    { dynamicConfig: { 'limit.historyCount.suggestContinueAsNew': 60 } },
  );
}, 120_000);
afterAll(() => lab?.stop());

test('what is changed holds from the next step on, however often its stage continues as new', async () => {
  const run = await lab.runs.start('changed', longStage());
  const refusal = (wanted: RunChange): Promise<string> =>
    run.executeUpdate(change, { args: [wanted] }).then(
      () => 'it was taken',
      (error: WorkflowUpdateFailedError) => error.cause!.message,
    );
  expect(await refusal({ maxSteps: { rl: -3 } })).toContain('maxSteps.rl: must be a whole number');
  // The spec has not been read yet: these wait for it.
  const early = Promise.all([
    refusal({ maxSteps: { rll: 3 } }),
    refusal({ budgets: { near: { count: 40 } }, reason: 'early' }),
  ]);
  const updates = async (): Promise<number> => {
    const { events } = await run.fetchHistory();
    return events!.filter((event) => event.workflowExecutionUpdateAcceptedEventAttributes).length;
  };
  await expect.poll(updates, { timeout: 30_000 }).toBe(2);
  opened.open();
  expect(await early).toEqual([expect.stringContaining('did you mean "rl"?') as string, 'it was taken']);

  const { end, stages } = await run.result();
  expect([end, stages[1]]).toMatchObject(['completed', { reason: '9 steps are done' }]);
  const { changes: shown } = await lab.runs.progress(run, () => true);
  expect(shown).toEqual(kept);
  expect(kept).toMatchObject([
    { number: 1, after: 0, stage: expect.any(String), step: null, reason: 'early' },
    { number: 2, after: 1, stage: 'rl', ...changes[0] },
    { number: 3, after: 2, stage: 'rl', ...changes[1] },
  ]);
  expect(new Set(kept.map(({ update }) => update)).size).toBe(3);
  const rl = facts.filter(({ stage }) => stage === 'rl');
  expect(rl.map(({ stageStep, maxSteps, change: held }) => [stageStep, maxSteps, held])).toEqual([
    [1, 10_000, 1],
    [2, 10_000, 1],
    ...[3, 4, 5, 6, 7, 8, 9].map((step) => [step, 9, 3]),
  ]);
  expect([...planned]).toEqual([
    [1, { count: 40 }],
    [2, { count: 40 }],
    ...[3, 4, 5, 6, 7, 8, 9].map((step) => [step, BUDGET]),
  ]);
});
