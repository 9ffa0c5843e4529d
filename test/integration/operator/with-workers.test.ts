import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { DueCallsRequest, TrainRequest, VerifyRequest } from '../../../core/requests.ts';
import { readRuns } from '../../../observe/runs.ts';
import type { Sources } from '../../../observe/sources.ts';
import { whyOf } from '../../../observe/why.ts';
import type { Reason, Why } from '../../../observe/why.ts';
import { ObjectStore } from '../../../store/object-store.ts';
import { hollowActivities } from '../../support/hollow-activities.ts';
import { ladderSpec } from '../../support/ladder-installation.ts';
import { until } from '../../support/run-client.ts';
import { Gate, startWorkflowLab } from '../../support/workflow-lab.ts';
import type { WorkflowLab } from '../../support/workflow-lab.ts';

// The real workflows, with activities that are slow, fail, or meet nobody: what a person is told of each.

/** By run: what its activities do until the gate opens. */
const slow = new Map<string, Gate>();
const failing = new Map<string, Gate>();
const damaged = new Set<string>();
const lonely = new Set<string>();

/** Alive, and getting nowhere. */
async function heldUp(gate: Gate): Promise<void> {
  const context = Context.current();
  const beat = (): void => context.heartbeat({ done: 3, total: 8, tokens: 500 });
  beat();
  const timer = setInterval(beat, 500);
  await gate.opened.finally(() => clearInterval(timer));
}

let lab: WorkflowLab;
let store: ObjectStore;
let sources: Sources;
beforeAll(async () => {
  lab = await startWorkflowLab(({ runs }) => {
    const { verifier, learner, rollout, ...others } = hollowActivities(runs);
    return {
      ...others,
      rollout: {
        ...rollout,
        dueCalls: (request: DueCallsRequest) => {
          const calls = rollout.dueCalls(request);
          const alone = lonely.has(request.group.run) && request.group.stage === 'rl';
          return calls.map((call) => (alone ? { ...call, queue: 'gradus-nobody' } : call));
        },
      },
      verifier: {
        ...verifier,
        verifyGroup: async (request: VerifyRequest) => {
          const gate = slow.get(request.group.run);
          if (gate && request.group.stage === 'rl') await heldUp(gate);
          return verifier.verifyGroup(request as never);
        },
      },
      learner: {
        trainStep: async (request: TrainRequest) => {
          const { run } = request;
          if (failing.has(run) && !failing.get(run)!.isOpen) throw new Error('no room\u001b[31m on the disk');
          if (damaged.delete(run))
            throw ApplicationFailure.nonRetryable('runs/x/batch is gone', 'gradus.store.missing-object');
          return learner.trainStep(request);
        },
      },
    };
  });
  store = await ObjectStore.connect(lab.settings.store);
  sources = { store, temporal: lab.runs.client };
}, 120_000);
afterAll(async () => {
  for (const gate of [...slow.values(), ...failing.values()]) gate.open();
  store?.close();
  await lab?.stop();
});

const spec = () => ladderSpec([{ verifier: 'near', passAtLeast: 0.5 }], { maxSteps: 2, groupsPerStep: 2 });

/** What a run waits for, once it does. */
async function whyWhen(run: string, wanted: (reason: Reason) => boolean): Promise<Why> {
  let last: Why | undefined;
  return until(
    async () => {
      last = await whyOf(sources, run);
      return last.reasons.some(wanted) ? last : undefined;
    },
    40_000,
    () => `${run} waits for something else: ${JSON.stringify(last)}`,
  );
}

test('what works is shown with how far it is, and nothing else is said', async () => {
  slow.set('slow', new Gate());
  const handle = await lab.runs.start('slow', spec());
  const why = await whyWhen('slow', (reason) => reason.kind === 'works' && reason.count === 2);
  expect(why).toMatchObject({ run: 'slow', status: 'running', stage: 'rl', problems: [] });
  expect(why.reasons).toMatchObject([
    {
      kind: 'works',
      activity: 'verifyGroup',
      queue: 'gradus-verifier',
      attempt: 1,
      said: [
        { kind: 'progress', done: 3, total: 8, tokens: 500 },
        { kind: 'progress', done: 3, total: 8, tokens: 500 },
      ],
    },
  ]);
  slow.get('slow')!.open();
  await handle.result();
  await expect(whyOf(sources, 'slow')).resolves.toMatchObject({
    status: 'completed',
    reasons: [{ kind: 'over', status: 'completed', failure: null }],
  });
});

test('what is tried again is told from what nobody serves, and both from a question', async () => {
  failing.set('retries', new Gate());
  damaged.add('asks');
  lonely.add('lonely');
  for (const run of ['retries', 'asks', 'lonely']) await lab.runs.start(run, spec());

  const retries = await whyWhen(
    'retries',
    ({ kind, ...more }) => kind === 'retry' && Object(more).attempt > 2,
  );
  expect(retries.reasons).toMatchObject([
    {
      kind: 'retry',
      activity: 'trainStep',
      queue: 'gradus-learner',
      failure: 'no room\u001b[31m on the disk',
    },
  ]);

  const asks = await whyWhen('asks', ({ kind }) => kind === 'question');
  expect(asks).toMatchObject({
    status: 'waiting',
    reasons: [{ kind: 'question', question: { id: expect.any(String) as string } }],
  });

  const alone = await whyWhen('lonely', ({ kind }) => kind === 'no-worker');
  expect(alone.reasons).toMatchObject([
    { kind: 'no-worker', queue: 'gradus-nobody', what: ['callTool'], lastAsked: null, sure: true },
  ]);

  // Those that wait for a person come first.
  const { rows, away } = await readRuns(sources);
  expect(away).toEqual([]);
  expect(rows[0]).toMatchObject({ run: 'asks', status: 'waiting', from: 'progress' });
  expect(rows[0]!.question!.reason).toContain('runs/x/batch is gone');
});
