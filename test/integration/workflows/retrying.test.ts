import { Context } from '@temporalio/activity';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { durable } from '../../../activities/durable.ts';
import { historiesFrom, signalsOf } from '../../support/histories.ts';
import { GradusError } from '../../../core/errors.ts';
import { activityRetried } from '../../../workflows/control/messages.ts';
import type { TrainRequest } from '../../../core/requests/learner.ts';
import type { VerifyRequest } from '../../../core/requests/verification.ts';
import { hollowActivities } from '../../support/hollow-activities.ts';
import { ladderSpec } from '../../support/ladder-installation.ts';
import { Gate, startWorkflowLab } from '../../support/workflow-lab.ts';
import type { WorkflowLab } from '../../support/workflow-lab.ts';
import { DONE } from '../../support/ended.ts';

// Activities that fail again and again, and what `progress` says of them. Learner steps of RL wait until a test lets
// them, so that there is time to look.

/** By activity: what it throws at which requests, as long as it stands here. */
const failing = new Map<string, (request: never) => Error | null | Promise<Error | null>>();
/** By stage. */
const gates = new Map<string, Gate>();

let lab: WorkflowLab;
beforeAll(async () => {
  lab = await startWorkflowLab(
    ({ runs }) => {
      const { orchestrator, verifier, learner, ...others } = hollowActivities(runs);
      return {
        ...others,
        orchestrator: failingAsSaid(orchestrator),
        verifier: failingAsSaid(verifier),
        learner: durable({
          trainStep: async (request: TrainRequest) => {
            await gates.get(request.stage)?.opened;
            return learner.trainStep(request);
          },
        }),
      };
    },
    // The run continues as new between its stages.
    { dynamicConfig: { 'limit.historyCount.suggestContinueAsNew': 10 } },
  );
}, 600_000);
afterAll(() => lab?.stop());
afterEach(() => {
  failing.clear();
  for (const gate of gates.values()) gate.open();
  vi.restoreAllMocks();
});

function failingAsSaid<A extends Record<string, (request: never) => unknown>>(activities: A) {
  const all = Object.entries(activities).map(([name, answer]) => [
    name,
    async (request: never): Promise<unknown> => {
      const failure = await failing.get(name)?.(request);
      if (failure) throw failure;
      return answer(request);
    },
  ]);
  return Object.fromEntries(all) as A;
}

const away = (): Error => new GradusError('store', 'unavailable', 'the store is away', { retryable: true });

/** A run of so many RL stages of one step each, held up in their learner steps. */
async function start(name: string, stages: readonly string[], groupsPerStep = 2) {
  const spec = ladderSpec([{ verifier: 'near', passAtLeast: 0.5, wait: false }], {
    groupsPerStep,
  });
  const [warmStart, first] = spec.stages;
  for (const stage of stages) gates.set(stage, new Gate());
  const graduation = { ...first.graduation, successAtLeast: 0.5 };
  return lab.runs.start(name, {
    ...spec,
    stages: [warmStart, ...stages.map((stage) => ({ ...first, name: stage, maxSteps: 1, graduation }))],
  });
}

test('an activity that fails again and again is named with its reason, and no longer when it recovers', async () => {
  const said = vi.spyOn(console, 'error').mockImplementation(() => undefined);
  const warned = vi.spyOn(console, 'warn').mockImplementation(() => undefined);
  failing.set('buildBatch', away);
  const handle = await start('recovers', ['rl']);
  for (const attempts of [3, 6]) {
    const { retrying } = await lab.runs.progress(handle, (shown) => shown.retrying[0]?.attempts === attempts);
    expect(retrying).toEqual([
      { activity: 'buildBatch', workflow: 'recovers/rl', attempts, lastFailure: 'the store is away' },
    ]);
  }
  failing.clear();
  const { status } = await lab.runs.progress(handle, ({ retrying }) => retrying.length === 0);
  expect(status).toBe('running');
  gates.get('rl')!.open();
  expect(await handle.result()).toMatchObject({ end: DONE });
  // The worker's log says the same, once.
  const lines = [...said.mock.calls, ...warned.mock.calls].map(([line]) => String(line));
  expect(lines.filter((line) => line.includes('the store is away'))).toEqual([
    'buildBatch of recovers/rl: attempt 3; the last one failed: the store is away',
    'buildBatch of recovers/rl: attempt 6; the last one failed: the store is away',
  ]);
});

test('what has failed for good is not tried again any more', async () => {
  // Its attempts end when that was seen.
  const seen = new Gate();
  gates.set('seen', seen);
  failing.set('verifyGroup', async ({ group: { stage, group } }: VerifyRequest) => {
    if (stage !== 'rl' || group !== 0) return null;
    if (Context.current().info.attempt > 3) await seen.opened;
    return new TypeError('x is not a function');
  });
  const handle = await start('fails', ['rl']);
  const { retrying } = await lab.runs.progress(handle, (shown) => shown.retrying.length > 0);
  expect(retrying).toEqual([
    { activity: 'verifyGroup', workflow: 'fails/rl/1/0', attempts: 3, lastFailure: 'x is not a function' },
  ]);
  seen.open();
  // Its group is lost, and the run goes on.
  const { status } = await lab.runs.progress(handle, (shown) => shown.retrying.length === 0);
  expect(status).toBe('running');
  gates.get('rl')!.open();
  expect(await handle.result()).toMatchObject({ end: DONE });
});

test("what the run's ladder tries again outlives the run's history", async () => {
  failing.set('requestVerdicts', away);
  const handle = await start('goes-on', ['one', 'two']);
  await lab.runs.progress(handle, ({ retrying }) => retrying[0]?.activity === 'requestVerdicts');
  const before = await handle.describe();
  gates.get('one')!.open();
  const { retrying } = await lab.runs.progress(handle, ({ phase }) => phase === 'two');
  expect((await handle.describe()).runId).not.toBe(before.runId);
  expect(retrying).toMatchObject([
    { activity: 'requestVerdicts', workflow: 'goes-on/ladder', lastFailure: 'the store is away' },
  ]);
  failing.clear();
  gates.get('two')!.open();
  expect(await handle.result()).toMatchObject({ end: DONE });
});

test('where many activities fail for one reason the run is told once, not by each of them', async () => {
  failing.set('verifyGroup', ({ group: { stage } }: VerifyRequest) => (stage === 'rl' ? away() : null));
  const handle = await start('many', ['rl'], 24);
  const first = (await handle.describe()).runId;
  const { retrying } = await lab.runs.progress(handle, (shown) => shown.retrying[0]?.attempts === 6);
  expect(retrying).toMatchObject([{ activity: 'verifyGroup', lastFailure: 'the store is away' }]);
  failing.clear();
  await lab.runs.progress(handle, (shown) => shown.retrying.length === 0);
  gates.get('rl')!.open();
  await handle.result();
  let reported = 0;
  for await (const { workflowId, history } of historiesFrom(lab.runs.client, {
    workflowId: 'many',
    runId: first,
  })) {
    if (workflowId === 'many') reported += signalsOf(history, activityRetried.name).length;
  }
  // Of the third attempt and the sixth, and that it is over; once more where one was still on its way.
  expect(reported).toBeLessThanOrEqual(6);
});
