import { afterAll, beforeAll, expect, test } from 'vitest';
import { historiesFrom } from '../../support/histories.ts';
import { noCalibration } from '../../../core/ladder/calibration.ts';
import type { WriteLedger, RequestVerdicts } from '../../../core/ladder/requests.ts';
import { ids } from '../../../core/names.ts';
import type { LadderStatus } from '../../../workflows/ladder/ladder-state.ts';
import { nothingSettled } from '../../support/hollow-activities.ts';
import { tierSpec } from '../../support/tier-specs.ts';
import { until } from '../../support/run-client.ts';
import { startWorkflowLab } from '../../support/workflow-lab.ts';
import type { WorkflowLab } from '../../support/workflow-lab.ts';

// More verdicts than one history can hear of: the server ends a workflow whose history has 51,200 events, or that was
// sent 10,000 signals, and nobody is told.

/** Events after which the server suggests to continue as new. */
const SUGGESTED = 200;
const REVERIFIED = 1000;
/** Of one step. */
const ESCALATING = 200;

const digest = (i: number): string => String(i).padStart(64, '0');
const asks = { key: 'asks', sha256: digest(0), bytes: 1 };
const pages: WriteLedger[] = [];

let lab: WorkflowLab;
beforeAll(async () => {
  lab = await startWorkflowLab(
    ({ runs: { client } }) => ({
      verifier: {
        isRunOver: () => false,
        openReverify: (input: object) => ({ concurrency: 4, ...input }),
        planReverify: () => ({ asks, count: REVERIFIED }),
        keepReverified: () => 'scores',
        planClimb: () => ({
          calibrations: [noCalibration()],
          asks,
          digests: Array.from({ length: ESCALATING }, (_, i) => digest(i)),
          verifier: 'near',
          costs: Array.from({ length: ESCALATING }, () => ({ seconds: 1, usd: 0 })),
          more: false,
          totals: {},
        }),
        settleClimb: nothingSettled,
        keepLedger: (page: WriteLedger) => void pages.push(page),
        /** Each verdict is there at once. */
        requestVerdicts: async ({ from, to, requester }: RequestVerdicts) => {
          for (let i = from; i < to; i++) {
            await client.workflow.getHandle(requester).signal('verdictArrived', {
              verifier: 'near',
              version: '1',
              digest: digest(i),
              result: 'scored',
              spent: { seconds: 1, usd: 0.5 },
            });
          }
        },
      },
    }),
    { dynamicConfig: { 'limit.historyCount.suggestContinueAsNew': SUGGESTED } },
  );
}, 600_000);
afterAll(() => lab?.stop());

/** Events of the longest history that a workflow and all that it started left. */
async function longest(workflowId: string): Promise<number> {
  const { runId } = await lab.runs.client.workflow.getHandle(workflowId).describe();
  let events = 0;
  for await (const { history } of historiesFrom(lab.runs.client, { workflowId, runId })) {
    events = Math.max(events, history.events?.length ?? 0);
  }
  return events;
}

test('whoever wants many verdicts hears of them in pages', async () => {
  const result: unknown = await lab.runs.client.workflow.execute('reverify', {
    taskQueue: 'gradus',
    workflowId: 'reverify-many',
    args: [{ run: 'many', verifier: 'near', version: '1' }],
  });
  expect(result).toEqual({
    computed: REVERIFIED,
    seconds: REVERIFIED,
    usd: REVERIFIED / 2,
    scores: 'scores',
  });
  // Of a page of two hundred, ten for each at most.
  expect(await longest('reverify-many')).toBeLessThan(2100);
});

test('a step that waits for many verdicts goes on where it was when its ladder continues as new', async () => {
  const { client } = lab.runs;
  const workflowId = ids.ladder('climbs');
  const tiers = [tierSpec('is-number', 'fast'), tierSpec('near', 'simulation', { concurrency: 4 })];
  const parent = await client.workflow.start('runOf', {
    taskQueue: 'gradus',
    workflowId: 'climbs',
    args: [
      'ladder',
      workflowId,
      { run: 'climbs', verification: { rungs: tiers, offerLateFor: 0, evaluateBy: 'is-number' } },
    ],
  });
  const ladder = client.workflow.getHandle(workflowId);
  await until(
    () =>
      ladder
        .signal('climbWanted', {
          id: '1',
          stage: 'rl',
          step: 1,
          groups: [],
          replyTo: 'climbs',
          budgets: {},
          reward: { components: [] },
        })
        .then(
          () => true,
          () => undefined,
        ),
    300_000,
    () => 'the ladder does not begin',
  );
  const answered = async (): Promise<true | undefined> => {
    const { events } = await client.workflow.getHandle('climbs').fetchHistory();
    const told = events?.filter(
      ({ workflowExecutionSignaledEventAttributes: signal }) => signal?.signalName === 'climbed',
    );
    return told?.length === 1 ? true : undefined;
  };
  await until(answered, 60_000, () => 'the step is not answered');
  await ladder.signal('ladderClosed');
  const end = (await parent.result()) as LadderStatus;
  expect(end).toMatchObject({ waiting: 0, totals: { near: { computed: ESCALATING, late: 0 } } });
  expect(end.continued).toBeGreaterThan(1);
  expect(await answered()).toBe(true);
  // The others of a place, and the pages of the ledger, come to their end first.
  expect(await longest('climbs')).toBeLessThan(2 * SUGGESTED);
});
