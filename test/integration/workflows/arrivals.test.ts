import { ApplicationFailure } from '@temporalio/common';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { noCalibration } from '../../../core/ladder/calibration.ts';
import type { WriteLedger, PlannedSweep, RequestVerdicts } from '../../../core/ladder/requests.ts';
import { ids } from '../../../core/names.ts';
import type { LadderStatus } from '../../../workflows/ladder/ladder-state.ts';
import { nothingSettled } from '../../support/hollow-activities.ts';
import { tierSpec } from '../../support/tier-specs.ts';
import { until, untilBegun } from '../../support/run-client.ts';
import { Gate, startWorkflowLab } from '../../support/workflow-lab.ts';
import type { WorkflowLab } from '../../support/workflow-lab.ts';

// What arrives while a workflow is about something else. Histories end after a few events here, so that everything
// continues as new wherever it can; activities are held up where a test wants something to happen meanwhile.

const digest = (i: number): string => String(i).padStart(64, '0');
const asks = { key: 'asks', sha256: digest(0), bytes: 1 };

/** What was asked, attempt by attempt; `from` and `to` of each. */
const requested: RequestVerdicts[] = [];
const pages: WriteLedger[] = [];
/** Hold up the pages of the ledger, in their order. */
const gates = [new Gate(), new Gate()];
let failures = 0;

let lab: WorkflowLab;
beforeAll(async () => {
  lab = await startWorkflowLab(
    {
      orchestrator: { isRunOver: () => Promise.resolve(false) },
      verifier: {
        isRunOver: () => Promise.resolve(false),
        planClimb: () =>
          Promise.resolve({
            calibrations: [noCalibration()],
            asks,
            digests: [1, 2, 3, 4, 5].map(digest),
            verifier: 'near',
            costs: [1, 2, 3, 4, 5].map(() => ({ seconds: 1, usd: 0 })),
            more: false,
            totals: {},
          }),
        settleClimb: nothingSettled,
        requestVerdicts: (request: RequestVerdicts) => {
          // The store is away when the last one is asked for: another attempt must be made, in 3 s.
          if (request.to === 5 && request.requester.endsWith('/ladder') && failures++ === 0) {
            throw ApplicationFailure.create({ message: 'away', nextRetryDelay: '3 seconds' });
          }
          requested.push(request);
          return Promise.resolve();
        },
        keepLedger: async (page: WriteLedger) => {
          pages.push(page);
          await gates[pages.length - 1]?.opened;
        },
        openSweep: (sweep: object) => Promise.resolve({ concurrency: 4, deadlineSeconds: 600, ...sweep }),
        planSweep: (): Promise<PlannedSweep> =>
          Promise.resolve({
            asks,
            // Two verifiers of one subject.
            names: ['near', 'exact'].map((verifier) =>
              ids.verdict({ verifier, version: '1', digest: digest(1) }),
            ),
            costs: [1, 1].map(() => ({ seconds: 1, usd: 0 })),
          }),
      },
    },
    { dynamicConfig: { 'limit.historyCount.suggestContinueAsNew': 10 } },
  );
}, 600_000);
afterAll(() => lab?.stop());

const arrived = (verifier: string, i: number) => ({
  verifier,
  version: '1',
  digest: digest(i),
  result: 'scored',
  spent: { seconds: 1, usd: 0 },
});

test('what the ladder asks while it writes its last page is asked, though it continues as new', async () => {
  const { client } = lab.runs;
  const tiers = [
    tierSpec('is-number', 'fast'),
    tierSpec('near', 'simulation', { wait: false, concurrency: 2 }),
  ];
  const workflowId = 'race/ladder';
  const input = { run: 'race', verification: { rungs: tiers, offerLateFor: 0, evaluateBy: 'is-number' } };
  const run = await client.workflow.start('runOf', {
    taskQueue: 'gradus',
    workflowId: 'race',
    args: ['ladder', workflowId, input],
  });
  await untilBegun(lab.runs, workflowId);
  const current = client.workflow.getHandle(workflowId);
  const asked = (to: number) =>
    until(
      () => Promise.resolve(requested.some((one) => one.to === to) || undefined),
      300_000,
      () => `what is asked ends at ${Math.max(0, ...requested.map((one) => one.to))}, not ${to}`,
    );
  const written = (count: number) =>
    until(
      () => Promise.resolve(pages.length >= count || undefined),
      300_000,
      () => `${pages.length} pages are begun, not ${count}`,
    );
  await current.signal('climbWanted', {
    id: '1',
    stage: 'rl',
    step: 1,
    groups: [],
    replyTo: 'nobody',
    budgets: {},
    reward: { components: [] },
  });
  await asked(2);
  await current.signal('verdictArrived', arrived('near', 1));
  await written(1);
  await asked(3);
  await current.signal('verdictArrived', arrived('near', 2));
  await asked(4);
  gates[0]!.open();
  await written(2);
  // Frees the place for the last one while the page is being written.
  await current.signal('verdictArrived', arrived('near', 3));
  gates[1]!.open();
  await until(
    () => Promise.resolve(failures > 0 || undefined),
    300_000,
    () => 'the last one is not asked for',
  );
  await asked(5);
  for (const i of [4, 5]) await current.signal('verdictArrived', arrived('near', i));
  await current.signal('ladderClosed');
  const end = (await run.result()) as LadderStatus;
  expect(end).toMatchObject({ waiting: 0, totals: { near: { computed: 5 } } });
  expect(end.continued).toBeGreaterThan(0);
});

test('a sweep hears of both when two verifiers judge one subject', async () => {
  const sweep = await lab.runs.client.workflow.start('verificationSweep', {
    taskQueue: 'gradus',
    workflowId: 'sweep',
    args: [{ run: 'swept', budget: { count: 2 }, deadlineSeconds: 600 }],
  });
  await until(
    () => Promise.resolve(requested.some(({ requester }) => requester === 'sweep') || undefined),
    300_000,
    () => 'nothing is asked',
  );
  for (const verifier of ['near', 'exact']) await sweep.signal('verdictArrived', arrived(verifier, 1));
  expect(await sweep.result()).toMatchObject({ asked: 2, arrived: 2, spent: { seconds: 2 } });
});
