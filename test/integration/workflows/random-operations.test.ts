import { WorkflowFailedError } from '@temporalio/client';
import type { WorkflowHandle } from '@temporalio/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { RandomStream } from '../../../core/random.ts';
import type { curriculum } from '../../../workflows/curriculum/curriculum.ts';
import type { CurriculumResult } from '../../../core/training/curriculum.ts';
import { hollowActivities } from '../../support/hollow-activities.ts';
import { ladderSpec } from '../../support/ladder-installation.ts';
import { until } from '../../support/run-client.ts';
import { startWorkflowLab } from '../../support/workflow-lab.ts';
import type { WorkflowLab } from '../../support/workflow-lab.ts';

// An operator resets and terminates whatever workflow of a run, to whatever place in its history, at whatever moment. A run
// goes on to the end that it would have had, or fails and names what was done to it; one that has failed is reset and goes
// on. Each plan is drawn from its seed. GRADUS_TEST_SEEDS=FROM-TO plays others.

const [from = 1, to = 4] = (process.env['GRADUS_TEST_SEEDS'] ?? '1-4').split('-').map(Number);
const SEEDS = Array.from({ length: to - from + 1 }, (_, i) => from + i);
const OPERATIONS = 5;
/** A run of which nothing is heard for so long hangs. */
const PATIENCE_MS = 60_000;

/** Activities that have been begun. */
let begun = 0;
/** An operation comes after so many more at most. */
const MOST_BETWEEN = 20;

let lab: WorkflowLab;
let alone: CurriculumResult;
const spec = {
  ...ladderSpec([{ verifier: 'near', passAtLeast: 0.5, wait: true }], { maxSteps: 4, groupsPerStep: 3 }),
};

const counted = (activities: Record<string, (request: never) => unknown>) =>
  Object.fromEntries(
    Object.entries(activities).map(([name, activity]) => [
      name,
      (request: never): unknown => {
        begun++;
        return activity(request);
      },
    ]),
  );

beforeAll(async () => {
  lab = await startWorkflowLab(
    ({ runs }) =>
      Object.fromEntries(
        Object.entries(hollowActivities(runs)).map(([role, activities]) => [role, counted(activities)]),
      ),
    { dynamicConfig: { 'limit.historyCount.suggestContinueAsNew': 80 } },
  );
  alone = await (await lab.runs.start('alone', spec)).result();
}, 600_000);
afterAll(() => lab?.stop());

/** It was terminated before it had begun. */
const NOTHING = 'nothing to reset to';

type Event = NonNullable<Awaited<ReturnType<WorkflowHandle['fetchHistory']>>['events']>[number];

interface Part {
  workflowId: string;
  runId: string;
}

/** Everything of a run that goes on now. */
async function partsOf(run: string): Promise<Part[]> {
  const query = `(WorkflowId = '${run}' OR WorkflowId STARTS_WITH '${run}/') AND ExecutionStatus = 'Running'`;
  const parts: Part[] = [];
  for await (const { workflowId, runId } of lab.runs.client.workflow.list({ query })) {
    parts.push({ workflowId, runId });
  }
  return parts.toSorted((a, b) => (a.workflowId < b.workflowId ? -1 : 1));
}

/** To one of the workflow tasks that it has completed. */
async function reset(
  { workflowId, runId }: Part,
  draw: RandomStream,
  choose = (ends: Event[]): Event => draw.pick(ends),
): Promise<string> {
  const { events } = await lab.runs.client.workflow.getHandle(workflowId, runId).fetchHistory();
  const ends = events!.filter((event) => event.workflowTaskCompletedEventAttributes);
  if (ends.length === 0) return NOTHING;
  const at = choose(ends).eventId!;
  await lab.runs.client.workflowService.resetWorkflowExecution({
    namespace: 'default',
    workflowExecution: { workflowId, runId },
    reason: 'at random',
    workflowTaskFinishEventId: at,
    requestId: `${runId}-${at.toString()}-${draw.int(0, 1e9)}`,
  });
  return `reset ${workflowId} to ${at.toString()}`;
}

async function operate(part: Part, draw: RandomStream): Promise<string> {
  try {
    if (draw.int(1, 3) > 1) return await reset(part, draw);
    await lab.runs.client.workflow.getHandle(part.workflowId, part.runId).terminate('at random');
    return `terminated ${part.workflowId}`;
  } catch (error) {
    // It has come to its end meanwhile, or cannot be reset while it starts a child.
    return `${part.workflowId}: ${(error as Error).message}`;
  }
}

async function newest(run: string): Promise<WorkflowHandle<typeof curriculum>> {
  const { runId } = await lab.runs.client.workflow.getHandle(run).describe();
  return lab.runs.client.workflow.getHandle<typeof curriculum>(run, runId);
}

/** How a run has ended: with its result or, where it has not, with what it says of itself. */
async function ended(run: string): Promise<CurriculumResult | { failure: string }> {
  const handle = await newest(run);
  try {
    return await handle.result();
  } catch (error) {
    if (!(error instanceof WorkflowFailedError)) throw error;
    if ((await handle.describe()).status.name === 'TERMINATED') return { failure: `${run} was terminated` };
    const { failure } = await lab.runs.progress(handle, (shown) => shown.status !== 'running');
    return { failure: failure ?? 'it does not say why' };
  }
}

const isOver = async (run: string): Promise<true | undefined> => {
  const { status } = await lab.runs.client.workflow.getHandle(run).describe();
  return status.name === 'RUNNING' ? undefined : true;
};

test.each(SEEDS)(
  'plan %i: what is reset and terminated goes on to the same end, or says what was done to it',
  async (seed) => {
    const run = `random-${seed}`;
    const draw = new RandomStream('operations', seed);
    await lab.runs.start(run, spec);
    const done: string[] = [];
    for (let n = 0; n < OPERATIONS; n++) {
      const next = begun + draw.int(1, MOST_BETWEEN);
      await until(
        async () => (begun >= next ? true : isOver(run)),
        PATIENCE_MS,
        () => `${run} hangs after ${done.join('; ')}`,
      );
      const parts = await partsOf(run);
      if (parts.length === 0) break;
      done.push(await operate(draw.pick(parts), draw));
    }
    for (let again = 0; ; again++) {
      await until(
        () => isOver(run),
        PATIENCE_MS,
        () => `${run} hangs after ${done.join('; ')}`,
      );
      const end = await ended(run);
      if (!('failure' in end)) {
        expect({ done, end: end.end, steps: end.steps, weights: end.checkpoint.weights }).toEqual({
          done,
          end: alone.end,
          steps: alone.steps,
          weights: alone.checkpoint.weights,
        });
        break;
      }
      done.push(end.failure);
      expect(end.failure).toMatch(new RegExp(`${run}\\S* (?:was terminated|has ended before its run)`));
      if (again === 3) throw new Error(`it does not go on after ${done.join('; ')}`);
      const { runId } = await lab.runs.client.workflow.getHandle(run).describe();
      if (done.at(-2) === NOTHING) {
        await lab.runs.start(run, spec);
        continue;
      }
      // As a run says whose ladder is gone; any other may go back there, too.
      done.push(await reset({ workflowId: run, runId }, draw, ([first]) => first!));
    }
    // Nothing of it is left behind.
    await until(
      async () => ((await partsOf(run)).length === 0 ? true : undefined),
      PATIENCE_MS,
      () => `something of ${run} goes on after ${done.join('; ')}`,
    );
    if (process.env['GRADUS_TEST_SEEDS']) console.log(run, JSON.stringify(done));
  },
  600_000,
);
