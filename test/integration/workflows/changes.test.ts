import { WorkflowFailedError } from '@temporalio/client';
import type { WorkflowUpdateFailedError } from '@temporalio/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createCurriculum } from '../../../activities/training/curriculum.ts';
import type { Budget } from '../../../core/ladder/budget.ts';
import type { PlanRequest } from '../../../core/ladder/requests.ts';
import type { ChangeRequest, StepFactsRequest } from '../../../core/requests/run.ts';
import type { GroupResult, VerifyRequest } from '../../../core/requests/verification.ts';
import type { RunChange } from '../../../core/run-change.ts';
import type { StepFacts } from '../../../core/training/step-facts.ts';
import { readChanges } from '../../../store/run/changes.ts';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import { change, changesMade } from '../../../workflows/control/messages.ts';
import { hollowActivities } from '../../support/hollow-activities.ts';
import { Gate, startWorkflowLab } from '../../support/workflow-lab.ts';
import type { WorkflowLab } from '../../support/workflow-lab.ts';
import { longStage } from '../../support/stopped-stage.ts';

// A run is changed in the middle of a step; it and its stages continue as new every few steps. What is changed lies in a
// real store.

const CHANGED_IN = 2;
const BUDGET = { count: 70, usd: 3 };
const changes: RunChange[] = [
  { budgets: { near: { count: 90, usd: 3 } }, maxSteps: { rl: 5000 }, reason: 'there is room' },
  { budgets: { near: { count: 70 } }, maxSteps: { rl: 9, later: 1 } },
];

const opened = new Gate();
const facts: StepFacts[] = [];
/** By stage and step. */
const planned = new Map<string, Budget>();

let store: ObjectStore;
let lab: WorkflowLab;
beforeAll(async () => {
  lab = await startWorkflowLab(
    async ({ runs, settings }) => {
      store = await ObjectStore.connect(settings.store);
      const { keepChange } = createCurriculum({ store, environments: new Map() });
      let changed = false;
      const hollow = hollowActivities(runs);
      const verifyGroup = async (request: VerifyRequest): Promise<GroupResult> => {
        const { group } = request;
        const run = runs.client.workflow.getHandle(group.run);
        if (group.stage === 'rl' && group.step === CHANGED_IN && !changed) {
          changed = true;
          for (const one of changes) await run.executeUpdate(change, { args: [one] });
          // What has no shape, and what is older than what is known, is no change.
          const stage = runs.client.workflow.getHandle(`${group.run}/rl`);
          await stage.signal('changesMade', { newest: 99, budgets: { near: 3 }, maxSteps: {} });
          await stage.signal(changesMade, { newest: 2, budgets: {}, maxSteps: { rl: 1 } });
        }
        return hollow.verifier.verifyGroup(request);
      };
      return {
        ...hollow,
        orchestrator: {
          ...hollow.orchestrator,
          openRun: async (request: Parameters<typeof hollow.orchestrator.openRun>[0]) => {
            await opened.opened;
            return hollow.orchestrator.openRun(request);
          },
          keepChange: (request: ChangeRequest) => keepChange(request, AbortSignal.timeout(60_000)),
          keepStepFacts: (request: StepFactsRequest) => void facts.push(request.facts),
        },
        verifier: {
          ...hollow.verifier,
          verifyGroup,
          planClimb: (request: PlanRequest) => {
            const { stage, step } = request.steps.at(-1)!;
            planned.set(`${stage}/${step}`, request.budget);
            return hollow.verifier.planClimb();
          },
        },
      };
    },
    { dynamicConfig: { 'limit.historyCount.suggestContinueAsNew': 60 } },
  );
}, 600_000);
afterAll(async () => {
  store?.close();
  await lab?.stop();
});

const LATER = [3, 4, 5, 6, 7, 8, 9];
const held = (stage: string) =>
  facts
    .filter((one) => one.stage === stage)
    .map(({ stageStep, maxSteps, change: number }) => [stageStep, maxSteps, number]);

/** A long stage, and a short one behind it. */
function spec() {
  const long = longStage();
  const later = { ...long.stages[1]!, name: 'later', maxSteps: 2 };
  return { ...long, stages: [...long.stages, later] };
}

test('what is changed holds from the next step on, also where a run continues as new, and again where it is reset', async () => {
  const run = await lab.runs.start('changed', spec());
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
  await expect.poll(updates, { timeout: 120_000 }).toBe(2);
  opened.open();
  expect(await early).toEqual([expect.stringContaining('did you mean "rl"?') as string, 'it was taken']);

  const { end, stages } = await run.result();
  expect([end, ...stages.slice(1)]).toMatchObject([
    'completed',
    { reason: '9 steps are done' },
    { reason: '1 steps are done' },
  ]);
  const kept = await readChanges(store, 'changed');
  expect(kept).toMatchObject([
    { number: 1, after: 0, stage: expect.any(String), step: null, reason: 'early' },
    { number: 2, after: 1, stage: 'rl', ...changes[0] },
    { number: 3, after: 2, stage: 'rl', ...changes[1] },
  ]);
  expect((await lab.runs.progress(run, () => true)).changes).toEqual(kept);
  expect(held('rl')).toEqual([[1, 10_000, 1], [2, 10_000, 1], ...LATER.map((step) => [step, 9, 3])]);
  expect(held('later')).toEqual([[1, 1, 3]]);
  expect(Object.fromEntries(planned)).toEqual({
    'rl/1': { count: 40 },
    'rl/2': { count: 40 },
    ...Object.fromEntries(LATER.map((step) => [`rl/${step}`, BUDGET])),
    'later/1': BUDGET,
  });
  const executions = (await run.describe()).raw.workflowExecutionInfo!;
  expect(executions.firstRunId).not.toBe(executions.execution!.runId);

  // Back to where nothing was done yet: Temporal brings what was changed again, and it holds from there on.
  facts.length = 0;
  const { events } = await lab.runs.client.workflow
    .getHandle('changed', executions.firstRunId!)
    .fetchHistory();
  const begun = events!.find((event) => event.workflowTaskCompletedEventAttributes)!;
  await lab.runs.client.workflowService.resetWorkflowExecution({
    namespace: lab.settings.namespace,
    workflowExecution: { workflowId: 'changed', runId: executions.firstRunId! },
    reason: 'a test',
    requestId: 'again',
    workflowTaskFinishEventId: begun.eventId!,
  });
  await lab.runs.client.workflow.getHandle('changed').result();
  expect(await readChanges(store, 'changed')).toEqual(kept);
  expect(
    (await lab.runs.progress(lab.runs.client.workflow.getHandle('changed'), () => true)).changes,
  ).toEqual(kept);
  expect(held('rl')).toEqual([1, 2, ...LATER].map((step) => [step, 9, 3]));
});

test('runs are listed by how they ended, whichever way that was', async () => {
  const { runs } = lab;
  const ended = (status: string, run: string) =>
    expect
      .poll(
        async () => {
          const found: string[] = [];
          for await (const { workflowId } of runs.client.workflow.list({
            query: `WorkflowType = 'curriculum' AND GradusStatus = '${status}' AND ExecutionStatus != 'Running'`,
          }))
            found.push(workflowId);
          return found;
        },
        { timeout: 30_000 },
      )
      .toContain(run);
  // This one has continued as new.
  await ended('completed', 'changed');
  await expect((await runs.start('wrong', {})).result()).rejects.toThrow(WorkflowFailedError);
  await ended('failed', 'wrong');
  const called = await runs.start('called-off', longStage());
  await runs.progress(called, ({ phase }) => phase === 'rl');
  await called.cancel();
  await expect(called.result()).rejects.toThrow(WorkflowFailedError);
  await ended('cancelled', 'called-off');
});
