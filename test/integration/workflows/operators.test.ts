import { WorkflowFailedError } from '@temporalio/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createRunWatch } from '../../../activities/run-watch.ts';
import { ids } from '../../../core/names.ts';
import { noOutcomes } from '../../../core/episode/outcome.ts';
import type { curriculum } from '../../../workflows/curriculum/curriculum.ts';
import type { LadderInput } from '../../../workflows/ladder/ladder.ts';
import type { LadderStatus } from '../../../workflows/ladder/ladder-state.ts';
import { decide } from '../../../workflows/control/messages.ts';
import { hollowActivities, verifyHeldUp } from '../../support/hollow-activities.ts';
import { ladderSpec } from '../../support/ladder-installation.ts';
import { until, untilBegun, untilSignalled } from '../../support/run-client.ts';
import { Gate, startWorkflowLab } from '../../support/workflow-lab.ts';
import type { WorkflowLab } from '../../support/workflow-lab.ts';
import { DONE } from '../../support/ended.ts';
import { resetToBegin } from '../../support/reset.ts';

// A person cancels or terminates a part of a run, not the run; and what a person sees who is asked.

/** By run: holds up the groups of its first step. */
const rollingOut = new Map<string, Gate>();
/** By run: holds up its ladder's verdicts. */
const judging = new Map<string, Gate>();
/** Runs of which no episode can be judged. */
const unjudged = new Set<string>();

let lab: WorkflowLab;
beforeAll(async () => {
  lab = await startWorkflowLab(({ runs }) => {
    const { verifier, ...others } = hollowActivities(runs);
    return {
      ...others,
      verifier: {
        ...verifier,
        verifyGroup: verifyHeldUp(rollingOut),
        settleClimb: (request: Parameters<typeof verifier.settleClimb>[0] & { run: string }) => {
          const settled = verifier.settleClimb(request);
          if (!unjudged.has(request.run)) return settled;
          const nothing = { arms: [], outcomes: { ...noOutcomes(), abstained: 1 }, rewardCount: 0 };
          return { ...settled, groups: settled.groups.map((group) => ({ ...group, ...nothing })) };
        },
        requestVerdicts: async (request: { requester: string }) => {
          await judging.get(request.requester)?.opened;
          return verifier.requestVerdicts(request as never);
        },
        withdraw: () => ({}),
      },
    };
  });
}, 600_000);
afterAll(async () => {
  // Activities that a test which failed has left behind are waited for.
  for (const gate of [...rollingOut.values(), ...judging.values()]) gate.open();
  await lab?.stop();
});

const start = (run: string, tier: { wait?: boolean } = {}) =>
  lab.runs.start(
    run,
    ladderSpec([{ verifier: 'near', passAtLeast: 0.5, ...tier }], { maxSteps: 2, groupsPerStep: 2 }),
  );

test.each(['cancel', 'terminate'] as const)(
  'a group that a person does away with (%s) has failed, and its run goes on',
  async (how) => {
    const run = `group-${how}`;
    rollingOut.set(run, new Gate());
    const handle = await start(run);
    const group = ids.group(run, 'rl', 1, 0);
    await untilBegun(lab.runs, group);
    await lab.runs.client.workflow.getHandle(group)[how]();
    await expect(lab.runs.client.workflow.getHandle(group).result()).rejects.toThrow(WorkflowFailedError);
    rollingOut.get(run)!.open();
    expect(await handle.result()).toMatchObject({ end: DONE });
  },
);

test.each([
  ['cancel', 'cancelled'],
  ['terminate', 'terminated'],
] as const)('a run whose stage a person does away with (%s) has failed, and says so', async (how, done) => {
  const run = `stage-${how}`;
  rollingOut.set(run, new Gate());
  const handle = await start(run);
  await untilBegun(lab.runs, ids.group(run, 'rl', 1, 0));
  await lab.runs.client.workflow.getHandle(`${run}/rl`)[how]();
  await expect(handle.result()).rejects.toThrow(WorkflowFailedError);
  expect(await lab.runs.progress(handle, () => true)).toMatchObject({
    status: 'failed',
    failure: `${run}/rl was ${done} from outside`,
  });
  rollingOut.get(run)!.open();
});

test('a run whose ladder is cancelled while a step waits for it fails at once, and says so', async () => {
  const run = 'ladder-cancelled';
  const ladder = lab.runs.client.workflow.getHandle(ids.ladder(run));
  judging.set(ids.ladder(run), new Gate());
  const handle = await start(run);
  await until(
    async () => {
      const status = await ladder.query<LadderStatus>('ladder').catch(() => null);
      return status?.waiting || undefined;
    },
    300_000,
    () => 'nothing is waited for',
  );
  await ladder.cancel();
  judging.get(ids.ladder(run))!.open();
  // Less than what a step waits before it looks after its ladder.
  const { failure } = await lab.runs.progress(handle, ({ status }) => status === 'failed', 120_000);
  expect(failure).toContain(`the ladder ${ids.ladder(run)} was cancelled`);
});

test.each([
  ['stage', 'rl'],
  ['run', null],
] as const)(
  'a %s that is reset while groups are rolled out goes on, and takes their places',
  async (_, stage) => {
    const run = `reset-${stage}`;
    rollingOut.set(run, new Gate());
    await start(run);
    await untilBegun(lab.runs, ids.group(run, 'rl', 1, 1));
    const reset = lab.runs.client.workflow.getHandle(stage === null ? run : `${run}/${stage}`);
    await resetToBegin(reset);
    const again = lab.runs.client.workflow.getHandle<typeof curriculum>(run);
    await until(
      async () => {
        const { runId } = await reset.describe();
        const { events: now } = await lab.runs.client.workflow
          .getHandle(reset.workflowId, runId)
          .fetchHistory();
        const over = now?.at(-1)?.workflowExecutionFailedEventAttributes;
        if (over) return true;
        return (
          now?.some(({ startChildWorkflowExecutionInitiatedEventAttributes: child }) =>
            child?.workflowId?.startsWith(`${run}/rl`),
          ) || undefined
        );
      },
      300_000,
      () => 'nothing is begun anew',
    );
    rollingOut.get(run)!.open();
    expect(await again.result()).toMatchObject({ end: DONE, steps: 3 });
  },
);

test.each([
  ['has come to its end', 'ladderClosed'],
  ['has failed', 'runGone'],
] as const)(
  'a run that %s and is reset while its ladder is still ending goes on with a ladder',
  async (_, told) => {
    const run = `reset-${told}`;
    const ladder = lab.runs.client.workflow.getHandle(ids.ladder(run));
    // What the ladder asks is under way for as long as it takes, and no step waits for it.
    judging.set(ids.ladder(run), new Gate());
    if (told === 'runGone') rollingOut.set(run, new Gate());
    const handle = await start(run, { wait: false });
    const stage = lab.runs.client.workflow.getHandle(`${run}/rl`);
    if (told === 'runGone') {
      await untilBegun(lab.runs, ids.group(run, 'rl', 1, 0));
      rollingOut.get(run)!.open();
      await until(
        async () => (await ladder.query<LadderStatus>('ladder')).waiting || undefined,
        300_000,
        () => 'the ladder asks nothing',
      );
      await stage.terminate();
      await expect(handle.result()).rejects.toThrow(WorkflowFailedError);
    } else expect(await handle.result()).toMatchObject({ end: DONE });
    await untilSignalled(lab.runs, ids.ladder(run), told);
    const { runId: ending } = await ladder.describe();

    rollingOut.set(run, new Gate());
    await resetToBegin(handle);
    await until(
      async () => {
        const { status } = await stage.describe();
        return status.name === 'RUNNING' || undefined;
      },
      300_000,
      () => 'the stage is not begun anew',
    );
    // Now it could end.
    judging.get(ids.ladder(run))!.open();
    await until(
      async () => {
        if (told === 'ladderClosed')
          return (await ladder.query<LadderStatus>('ladder')).waiting === 0 || undefined;
        const { status } = await lab.runs.client.workflow.getHandle(ladder.workflowId, ending).describe();
        return status.name !== 'RUNNING' || undefined;
      },
      300_000,
      () => 'the ladder still waits',
    );
    rollingOut.get(run)!.open();
    const again = lab.runs.client.workflow.getHandle<typeof curriculum>(run);
    expect(await again.result()).toMatchObject({ end: DONE, steps: 3 });
    await ladder.result();

    // Reset after that it has another ladder, which watches the run that there is now.
    rollingOut.set(run, new Gate());
    await resetToBegin(handle);
    await until(
      async () => {
        const { status } = await ladder.describe();
        return status.name === 'RUNNING' || undefined;
      },
      300_000,
      () => 'no other ladder begins',
    );
    const { events } = await ladder.fetchHistory();
    const [input] = events![0]!.workflowExecutionStartedEventAttributes!.input!.payloads!;
    const { firstRunId } = JSON.parse(Buffer.from(input!.data!).toString()) as LadderInput;
    const watch = createRunWatch(lab.runs);
    expect(await watch.isRunOver({ workflowId: run, firstRunId })).toBe(false);
    rollingOut.get(run)!.open();
    expect(await again.result()).toMatchObject({ end: DONE, steps: 3 });
  },
);

test('pause and resume reach a stage in the order in which they were sent', async () => {
  const run = 'toggled';
  rollingOut.set(run, new Gate());
  const handle = await start(run);
  await untilBegun(lab.runs, ids.group(run, 'rl', 1, 0));
  const sent = Array.from({ length: 20 }, () => ['pause', 'resume']).flat();
  for (const name of sent) await handle.signal(name);
  const received = await until(
    async () => {
      const { events } = await lab.runs.client.workflow.getHandle(`${run}/rl`).fetchHistory();
      const names = events!.flatMap(
        (event) => event.workflowExecutionSignaledEventAttributes?.signalName ?? [],
      );
      return names.length === sent.length ? names : undefined;
    },
    300_000,
    () => 'not all are passed on',
  );
  expect(received).toEqual(sent);
  rollingOut.get(run)!.open();
  expect(await handle.result()).toMatchObject({ end: DONE });
});

test('who is asked sees the step that the question is about', async () => {
  unjudged.add('asked');
  const handle = await start('asked');
  const { step } = await lab.runs.progress(handle, ({ status }) => status === 'waiting');
  expect(step).toMatchObject({ stage: 'rl', stageStep: 1 });
  await lab.runs.settled('asked/rl');
  const { events } = await lab.runs.client.workflow.getHandle('asked/rl').fetchHistory();
  // The server keeps no order of signals that are under way together.
  const said = events!.flatMap((event) => {
    const sent = event.signalExternalWorkflowExecutionInitiatedEventAttributes;
    if (sent) return [sent.signalName];
    return event.externalWorkflowExecutionSignaledEventAttributes ? ['delivered'] : [];
  });
  expect(said).toEqual(
    ['climbWanted', 'stepReported', 'questionAsked'].flatMap((name) => [name, 'delivered']),
  );
  await handle.executeUpdate(decide, { args: ['stop'] });
  await handle.result();
});
