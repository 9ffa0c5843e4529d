import { WorkflowNotFoundError, WorkflowUpdateFailedError } from '@temporalio/client';
import type { WorkflowHandle } from '@temporalio/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { noCalibration } from '../../../core/ladder/calibration.ts';
import type { VerdictRequest, WriteLedger, RequestVerdicts } from '../../../core/ladder/requests.ts';
import { ids } from '../../../core/names.ts';
import type { OpenQuestion } from '../../../core/question.ts';
import type { LadderStatus } from '../../../workflows/ladder/ladder-state.ts';
import { decide, questionAsked } from '../../../workflows/control/messages.ts';
import type { Progress } from '../../../workflows/control/messages.ts';
import { hollowActivities, verifyHeldUp } from '../../support/hollow-activities.ts';
import { ladderSpec } from '../../support/ladder-installation.ts';
import { tierSpec } from '../../support/tier-specs.ts';
import { until, untilBegun } from '../../support/run-client.ts';
import { Gate, startWorkflowLab } from '../../support/workflow-lab.ts';
import type { WorkflowLab } from '../../support/workflow-lab.ts';

// What reaches a workflow in the last moments of a history: while it continues as new, or comes to its end. Histories
// end after a few events here.

const digest = (i: number): string => String(i).padStart(64, '0');
const asks = { key: 'asks', sha256: digest(0), bytes: 1 };
const DIGESTS = [1, 2, 3].map(digest);

const requested: RequestVerdicts[] = [];
const pages: WriteLedger[] = [];
/** By run: holds up the pages of its ledger. */
const writing = new Map<string, Gate>();
/** By run: holds up its first step. */
const stepping = new Map<string, Gate>();
/** By verifier: holds up whether a verdict is known. */
const recalling = new Map<string, Gate>();

let lab: WorkflowLab;
beforeAll(async () => {
  lab = await startWorkflowLab(
    ({ runs }) => {
      const { verifier, ...others } = hollowActivities(runs);
      return {
        ...others,
        verifier: {
          ...verifier,
          verifyGroup: verifyHeldUp(stepping),
          planClimb: () => ({
            calibrations: [noCalibration()],
            asks,
            digests: DIGESTS,
            verifier: 'near',
            costs: DIGESTS.map(() => ({ seconds: 1, usd: 0 })),
            more: false,
            totals: {},
          }),
          requestVerdicts: (request: RequestVerdicts) => void requested.push(request),
          withdraw: () => ({}),
          keepLedger: async (page: WriteLedger) => {
            pages.push(page);
            await writing.get(page.run)?.opened;
          },
          recallVerdict: async ({ verifier: asked }: { verifier: string }) => {
            await recalling.get(asked)?.opened;
            return null;
          },
          keepVerdict: ({ answer }: { answer: object }) => ({ answer, lost: null }),
        },
      };
    },
    { dynamicConfig: { 'limit.historyCount.suggestContinueAsNew': 10 } },
  );
}, 600_000);
afterAll(() => lab?.stop());

const within = <T>(promise: Promise<T>, ms: number): Promise<T | 'still runs'> =>
  Promise.race([
    promise,
    new Promise<'still runs'>((resolve) => setTimeout(() => resolve('still runs'), ms).unref()),
  ]);

test.each(['told that its run is gone', 'cancelled'])(
  'a ladder that is %s while it continues as new ends all the same',
  async (how) => {
    const { client } = lab.runs;
    const run = how.replaceAll(' ', '-');
    const workflowId = ids.ladder(run);
    writing.set(run, new Gate());
    const tiers = [
      tierSpec('is-number', 'fast'),
      tierSpec('near', 'simulation', { wait: false, concurrency: 1 }),
    ];
    const parent = await client.workflow.start('runOf', {
      taskQueue: 'gradus',
      workflowId: run,
      args: [
        'ladder',
        workflowId,
        { run, verification: { rungs: tiers, offerLateFor: 0, evaluateBy: 'is-number' } },
      ],
    });
    await untilBegun(lab.runs, workflowId);
    const ladder = client.workflow.getHandle(workflowId);
    await ladder.signal('climbWanted', {
      id: '1',
      stage: 'rl',
      step: 1,
      groups: [],
      replyTo: 'nobody',
      budgets: {},
      reward: { components: [] },
    });
    const asked = (count: number) =>
      until(
        () =>
          Promise.resolve(
            requested.filter(({ requester }) => requester === workflowId).length >= count || undefined,
          ),
        300_000,
        () => `${count} are not asked`,
      );
    await asked(1);
    const arrived = { verifier: 'near', version: '1', digest: digest(1), result: 'scored', spent: null };
    await ladder.signal('verdictArrived', arrived);
    await until(
      () => Promise.resolve(pages.some((page) => page.run === run) || undefined),
      300_000,
      () => 'no page is written',
    );
    await asked(2);
    // It writes its last page, and has more events than a history may have.
    await (how === 'cancelled' ? ladder.cancel() : ladder.signal('runGone'));
    writing.get(run)!.open();
    const end = await within(parent.result() as Promise<LadderStatus>, 120_000);
    expect(end).toMatchObject({ waiting: 2 });
  },
);

test('who asks for a verdict again while others are told of it is told again', async () => {
  const { client } = lab.runs;
  const ask: VerdictRequest = {
    request: {
      format: 'gradus.verify/1',
      verifier: 'expert',
      version: '1',
      digest: digest(7),
      subject: null,
    },
    environment: 'none',
    cost: { seconds: 1, usd: 0 },
    limits: { timeoutSeconds: 1, heartbeatSeconds: 1, maxAttempts: 1 },
    served: { by: 'people', reviewers: 1 },
  };
  // Who asks is a run that waits for something else, and keeps what it is told.
  const tiers = [tierSpec('is-number', 'fast'), tierSpec('near', 'simulation')];
  await client.workflow.start('runOf', {
    taskQueue: 'gradus',
    workflowId: 'asking',
    args: [
      'ladder',
      'asking/ladder',
      { run: 'asking', verification: { rungs: tiers, offerLateFor: 0, evaluateBy: 'is-number' } },
    ],
  });
  await untilBegun(lab.runs, 'asking/ladder');
  const told = async (): Promise<number> => {
    let count = 0;
    const { raw } = await client.workflow.getHandle('asking').describe();
    expect(raw.workflowExecutionInfo).toBeDefined();
    const { events } = await client.workflow.getHandle('asking').fetchHistory();
    for (const event of events ?? []) {
      if (event.workflowExecutionSignaledEventAttributes?.signalName === 'verdictArrived') count++;
    }
    return count;
  };
  const wanted = (who: string) =>
    client.workflow.signalWithStart('review', {
      taskQueue: 'gradus',
      workflowId: ids.verdict(ask.request),
      args: [ask],
      signal: 'verdictWanted',
      signalArgs: [who],
    });
  await wanted('asking');
  for (let i = 0; i < 100; i++) await wanted(`gone-${i}`);
  await until(
    async () => ((await told()) === 1 ? true : undefined),
    300_000,
    () => 'nobody is told',
  );
  await wanted('asking');
  await until(
    async () => ((await told()) === 2 ? true : undefined),
    300_000,
    () => 'who asked again is not told',
  );
  await client.workflow.getHandle('asking').terminate();
});

test('a review takes no more opinions than it has reviewers', async () => {
  const { client } = lab.runs;
  recalling.set('held', new Gate());
  const ask: VerdictRequest = {
    request: { format: 'gradus.verify/1', verifier: 'held', version: '1', digest: digest(8), subject: null },
    environment: 'none',
    cost: { seconds: 1, usd: 0 },
    limits: { timeoutSeconds: 600, heartbeatSeconds: 1, maxAttempts: 1 },
    served: { by: 'people', reviewers: 1 },
  };
  const review = await client.workflow.start('review', {
    taskQueue: 'gradus',
    workflowId: ids.verdict(ask.request),
    args: [ask],
  });
  const say = (reviewer: string, score: number) =>
    review.executeUpdate('submitVerdict', { args: [{ reviewer, score }] });
  await say('first', 0);
  await expect(say('second', 1)).rejects.toBeInstanceOf(WorkflowUpdateFailedError);
  recalling.get('held')!.open();
  await review.result();
  expect(await review.query('review')).toMatchObject({ verdict: { kind: 'scored', score: 0 } });
});

const wholeRun = (name: string) => {
  const spec = ladderSpec([{ verifier: 'near', passAtLeast: 0.5, wait: false }], {
    maxSteps: 1,
    groupsPerStep: 1,
  });
  return lab.runs.start(name, spec);
};

test('what progress showed is shown after the run has continued as new', async () => {
  stepping.set('shown', new Gate());
  const handle = await wholeRun('shown');
  const { runId: first } = await handle.describe();
  const { step, heldOut, learnerBackend } = await lab.runs.progress(handle, ({ phase }) => phase === 'rl');
  expect((await handle.describe()).runId).not.toBe(first);
  expect(step?.stage).toBe('warm-start');
  expect(heldOut).toEqual(step?.heldOut);
  expect(learnerBackend).toBe('none');
  stepping.get('shown')!.open();
  await handle.result();
});

test('a question that reaches a run while it comes to its end is answered', async () => {
  const unanswered: string[] = [];
  for (const name of ['ends-1', 'ends-2', 'ends-3']) {
    stepping.set(name, new Gate());
    const handle = await wholeRun(name);
    await lab.runs.progress(handle, ({ phase }) => phase === 'rl');
    const asker = ids.ladder(name);
    const question = (i: number): OpenQuestion => ({
      id: `${name}-${i}`,
      asker,
      reason: `reason ${i}`,
      answers: [
        { answer: 'continue', effect: 'go on' },
        { answer: 'stop', effect: 'stop' },
      ],
    });
    await handle.signal(questionAsked, question(0));
    stepping.get(name)!.open();
    await lab.runs.progress(handle, ({ phase, status }) => phase === 'report' && status === 'waiting');
    await new Promise((resolve) => setTimeout(resolve, 500));
    // The last question is answered: nothing keeps the run from its end.
    const asked = ['0'];
    await handle.startUpdate(decide, { args: ['continue'], waitForStage: 'ACCEPTED' });
    for (let i = 1; i < 20; i++) {
      try {
        await handle.signal(questionAsked, question(i));
        asked.push(String(i));
      } catch (error) {
        if (!(error instanceof WorkflowNotFoundError)) throw error;
        break;
      }
    }
    for (;;) {
      const shown = await handle.query<Progress>('progress');
      if (shown.question === null) break;
      await handle.executeUpdate(decide, { args: ['continue'] });
    }
    await handle.result();
    const { question: left } = await handle.query<Progress>('progress');
    if (left) unanswered.push(left.id);
    const answered = await sentTo(handle, asker);
    unanswered.push(...asked.map((i) => `${name}-${i}`).filter((id) => !answered.has(id)));
  }
  expect(unanswered).toEqual([]);
});

/** Questions whose answers a run has sent. */
async function sentTo(handle: WorkflowHandle, asker: string): Promise<Set<string>> {
  const found = new Set<string>();
  const { runId } = await handle.describe();
  const { events } = await lab.runs.client.workflow.getHandle(handle.workflowId, runId).fetchHistory();
  for (const event of events ?? []) {
    const sent = event.signalExternalWorkflowExecutionInitiatedEventAttributes;
    if (sent?.signalName !== 'decided' || sent.workflowExecution?.workflowId !== asker) continue;
    const { question } = JSON.parse(Buffer.from(sent.input!.payloads![0]!.data!).toString()) as {
      question: string;
    };
    found.add(question);
  }
  return found;
}
