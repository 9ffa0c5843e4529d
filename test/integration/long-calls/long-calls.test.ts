import { mkdtempSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { CancelledFailure, defaultPayloadConverter } from '@temporalio/common';
import { WorkflowFailedError } from '@temporalio/client';
import type { WorkflowHandle } from '@temporalio/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import { loadTrajectories } from '../../../store/rollout/trajectories.ts';
import { historiesFrom } from '../../support/histories.ts';
import type { History } from '../../support/histories.ts';
import type { CurriculumResult } from '../../../core/training/curriculum.ts';
import { QUEUES } from '../../../core/names.ts';
import type { Outcome } from '../../../core/episode/outcome.ts';
import type { ResumeRequest } from '../../../core/requests/rollout.ts';
import type { GroupResult } from '../../../core/requests/verification.ts';
import { briefSpec } from '../../support/brief-spec.ts';
import type { CallEvent } from '../../support/brief-calculator.ts';
import { until } from '../../support/run-client.ts';
import type { RunClient } from '../../support/run-client.ts';
import { startTestInstallation } from '../../support/test-installation.ts';
import type { TestInstallation } from '../../support/test-installation.ts';
import { DONE } from '../../support/ended.ts';

// Tools that take long are activities of their own. Here their faults: what each does is in the name of the run, see
// test/support/brief-calculator.ts. All runs have the same spec and seed, so those that lose nothing end alike.

const GROUPS = 4;
/** The activities of a group besides its long calls. */
const OTHERS = ['advance', 'dueCalls', 'resume', 'gather', 'verifyGroup'];
const SAMPLES = 4;
const spec = briefSpec({ environment: 'calculator-brief' });

const folder = mkdtempSync(path.join(tmpdir(), 'gradus-calls-'));
const callsFile = path.join(folder, 'calls.jsonl');
let installation: TestInstallation;
let store: ObjectStore;
let runs: RunClient;
let handles: Awaited<ReturnType<RunClient['start']>>[];
let plain: CurriculumResult;

beforeAll(async () => {
  installation = await startTestInstallation({
    processes: [['orchestrator', 'verifier'], ['tool'], ['rollout'], ['learner']],
    env: {
      GRADUS_ENVIRONMENTS: path.join(import.meta.dirname, '../../support/brief-calculator.ts'),
      GRADUS_TEST_CALLS: callsFile,
    },
  });
  store = await ObjectStore.connect(installation.settings.store);
  ({ runs } = installation);
  // These need nobody, so that they may wait at the same time.
  handles = await Promise.all(['plain', 'flaky', 'deaf', 'doomed'].map((run) => runs.start(run, spec)));
  plain = await handles[0]!.result();
});

afterAll(async () => {
  store?.close();
  await installation?.remove();
  await rm(folder, { recursive: true, force: true });
});

async function calls(run: string): Promise<CallEvent[]> {
  const lines = (await readFile(callsFile, 'utf8')).split('\n').filter((line) => line !== '');
  return lines.map((line) => JSON.parse(line) as CallEvent).filter(({ call }) => call.startsWith(`${run}/`));
}

/** Resolves with the workflows of the first step that have a call running, when none has anything else to do. */
async function heldGroups(run: string): Promise<string[]> {
  return until(
    async () => {
      const held = await runs.running(`${run}/rl/1/`, 'callTool');
      const others = await runs.running(`${run}/rl/1/`, ...OTHERS);
      const begun = (await calls(run)).filter(({ call }) => call.startsWith(`${run}/rl/1/`));
      const open = begun.filter(({ event }) => event === 'start').length;
      const ended = begun.filter(({ event }) => event === 'end').length;
      const settled = others.length === 0 && held.length > 0 && open - ended === held.length;
      return settled ? held.map(({ workflowId }) => workflowId) : undefined;
    },
    300_000,
    () => `no call of ${run} is held`,
  );
}

async function killToolWorker(): Promise<void> {
  const pid = installation.workers.pid('tool')!;
  process.kill(pid, 'SIGKILL');
  await until(
    async () => ([undefined, pid].includes(installation.workers.pid('tool')) ? undefined : true),
    300_000,
    () => 'the tool worker did not come back',
  );
  await installation.workers.ready();
}

async function groupsOf(run: string, step: number): Promise<GroupResult[]> {
  return Promise.all(
    Array.from(
      { length: GROUPS },
      (_, group) =>
        runs.client.workflow.getHandle(`${run}/rl/${step}/${group}`).result() as Promise<GroupResult>,
    ),
  );
}

async function outcomesOf(groups: readonly GroupResult[]): Promise<Outcome[]> {
  const loaded = await Promise.all(groups.map(({ trajectories }) => loadTrajectories(store, trajectories!)));
  return loaded.flatMap(({ episodes }) => episodes.map(({ outcome }) => outcome!));
}

const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0);

/** A run in which some episodes failed: they are counted, and have no reward; at a tool they are no successes. */
function expectOnlyCounted(groups: readonly GroupResult[], failed: number, at: 'tool' | 'infra'): void {
  expect(failed).toBeGreaterThan(0);
  expect(sum(groups.map(({ outcomes }) => outcomes.failed))).toBe(failed);
  const judged = GROUPS * SAMPLES - failed;
  expect(sum(groups.map(({ rewardCount }) => rewardCount))).toBe(judged);
  const arms = groups.flatMap((group) => group.arms);
  expect(sum(arms.map(({ trials }) => trials))).toBe(at === 'tool' ? GROUPS * SAMPLES : judged);
  expect(sum(arms.map(({ toolFailures = 0 }) => toolFailures))).toBe(at === 'tool' ? failed : 0);
}

test('each long call is an activity of its own, on its queue, with its limits; no call is made twice', async () => {
  expect(plain.end).toEqual(DONE);
  const made = await calls('plain');
  const begun = made.filter(({ event }) => event === 'start');
  expect(begun.length).toBeGreaterThan(20);
  expect(new Set(begun.map(({ call }) => call)).size).toBe(begun.length);

  let scheduled = 0;
  for (let group = 0; group < GROUPS; group++) {
    const { workflowId, runId } = await runs.client.workflow.getHandle(`plain/rl/1/${group}`).describe();
    const events: NonNullable<History['events']> = [];
    for await (const { history } of historiesFrom(runs.client, { workflowId, runId })) {
      events.push(...(history.events ?? []));
    }
    const activities = events.flatMap((event) => event.activityTaskScheduledEventAttributes ?? []);
    const ofType = (name: string) => activities.filter(({ activityType }) => activityType?.name === name);
    const callTools = ofType('callTool');
    // One advance for all episodes; each goes on once after each of its calls.
    expect(ofType('advance')).toHaveLength(1);
    const resumed = ofType('resume').flatMap(
      ({ input }) => defaultPayloadConverter.fromPayload<ResumeRequest>(input!.payloads![0]!).returned,
    );
    expect(resumed).toHaveLength(callTools.length);
    expect(new Set(resumed.map(({ call }) => call.id)).size).toBe(callTools.length);
    for (const call of callTools) {
      expect(call.taskQueue?.name).toBe(QUEUES.tool);
      // The worker's own sign of life; the tool's is the host's affair, and so are its attempts.
      expect(Number(call.heartbeatTimeout?.seconds)).toBe(20);
      expect(Number(call.startToCloseTimeout?.seconds)).toBeGreaterThanOrEqual(30);
      expect(call.retryPolicy?.maximumAttempts).toBe(0);
    }
    scheduled += callTools.length;
  }
  expect(scheduled).toBe(begun.filter(({ call }) => call.startsWith('plain/rl/1/')).length);
});

test('calls that fail are tried again, and the run ends as if they had not', async () => {
  const result = await handles[1]!.result();
  const attempts = (await calls('flaky')).map(({ attempt }) => attempt);
  expect(Math.max(...attempts)).toBeGreaterThanOrEqual(3);
  expect(result.checkpoint.weights).toBe(plain.checkpoint.weights);
  expect(result.after).toMatchObject({ arms: plain.after!.arms, outcomes: plain.after!.outcomes });
});

test('the tool worker is killed in mid-call: the calls are made again, and the run ends as if nothing had been', async () => {
  const handle = await runs.start('held-killed', spec);
  const [held] = await heldGroups('held-killed');
  let beats: unknown[] = [];
  await until(
    async () => {
      const { raw } = await runs.client.workflow.getHandle(held!).describe();
      beats = raw.pendingActivities!.flatMap(({ heartbeatDetails }) =>
        (heartbeatDetails?.payloads ?? []).map((one) => defaultPayloadConverter.fromPayload<unknown>(one)),
      );
      return beats.some((one) => typeof (one as { said?: unknown }).said === 'number') || undefined;
    },
    300_000,
    () => `no call says how far it is: ${JSON.stringify(beats)}`,
  );
  expect(beats).toContainEqual(expect.objectContaining({ failed: 0 }));

  await killToolWorker();
  const result = await handle.result();
  expect(Math.max(...(await calls('held-killed')).map(({ attempt }) => attempt))).toBe(2);
  expect(result.checkpoint.weights).toBe(plain.checkpoint.weights);
});

test('a tool that hangs without a sign of life is found out and called again', async () => {
  const result = await handles[2]!.result();
  const again = (await calls('deaf')).filter(({ attempt }) => attempt > 1);
  expect(again.length).toBeGreaterThan(0);
  expect(result.checkpoint.weights).toBe(plain.checkpoint.weights);
});

test('the object store is away for longer than attempts last: the calls wait for it and no attempt is lost', async () => {
  const handle = await runs.start('held-outage', spec);
  const waiting = await heldGroups('held-outage');
  installation.stack.objectStore.kill();
  await writeFile(`${callsFile}.release`, '');
  const waited = await until(
    async () => {
      for (const held of new Set(waiting)) {
        const { raw } = await runs.client.workflow.getHandle(held).describe();
        for (const { heartbeatDetails } of raw.pendingActivities ?? []) {
          const [payload] = heartbeatDetails?.payloads ?? [];
          const answer = payload && defaultPayloadConverter.fromPayload(payload);
          const { waitsForStoreSeconds = 0 } = (answer ?? {}) as { waitsForStoreSeconds?: number };
          if (waitsForStoreSeconds >= 6) return waitsForStoreSeconds;
        }
      }
      return undefined;
    },
    300_000,
    () => 'no call waits for the store',
  );
  expect(waited).toBeGreaterThanOrEqual(6);
  await installation.stack.objectStore.restart();

  const result = await handle.result();
  await rm(`${callsFile}.release`);
  expect(result.checkpoint.weights).toBe(plain.checkpoint.weights);
  expect((await calls('held-outage')).every(({ attempt }) => attempt === 1)).toBe(true);
});

test('a call that fails for good ends its episode as failed, never as a zero; the others train on', async () => {
  const result = await handles[3]!.result();
  expect(result.end).toEqual(DONE);
  const groups = await groupsOf('doomed', 1);
  const failed = (await outcomesOf(groups)).filter((outcome) => outcome.kind === 'failed');
  expectOnlyCounted(groups, failed.length, 'tool');
  for (const outcome of failed) {
    expect(outcome).toMatchObject({
      boundary: 'tool',
      reason: expect.stringContaining('scrapped') as string,
    });
  }
  // Told that it is for good, nobody tries again.
  expect((await calls('doomed')).every(({ attempt }) => attempt === 1)).toBe(true);
  expect(result.checkpoint.weights).not.toBe(result.reference!.weights);
});

test('a tool that may run once and whose worker dies is not called again: its fate is unknown', async () => {
  const handle = await runs.start('lost', briefSpec({ environment: 'calculator-once' }));
  const held = await heldGroups('lost');
  await killToolWorker();
  const result = await handle.result();
  expect(result.end).toEqual(DONE);

  const begun = (await calls('lost')).filter(({ event }) => event === 'start');
  expect(new Set(begun.map(({ call }) => call)).size).toBe(begun.length);
  const groups = await groupsOf('lost', 1);
  const failed = (await outcomesOf(groups)).filter((outcome) => outcome.kind === 'failed');
  expectOnlyCounted(groups, held.length, 'infra');
  for (const outcome of failed) {
    expect(outcome).toMatchObject({
      boundary: 'infra',
      reason: expect.stringMatching(/fate is unknown.*must not be repeated/) as string,
    });
  }
});

test('cancelling the run reaches a tool in mid-call, and nothing of the run stays behind', async () => {
  const handle: WorkflowHandle = await runs.start('held-cancelled', spec);
  await heldGroups('held-cancelled');
  await handle.cancel();
  const error = await handle.result().catch((caught: unknown) => caught);
  expect(error).toBeInstanceOf(WorkflowFailedError);
  expect((error as WorkflowFailedError).cause).toBeInstanceOf(CancelledFailure);
  await until(
    async () => {
      const made = await calls('held-cancelled');
      const open = made.filter(({ event }) => event === 'start').length;
      const aborted = made.filter(({ event }) => event === 'aborted').length;
      const ended = made.filter(({ event }) => event === 'end').length;
      return aborted > 0 && open === ended + aborted ? true : undefined;
    },
    300_000,
    () => 'a call went on after its run was cancelled',
  );
  await until(
    async () => {
      for await (const _ of runs.client.workflow.list({
        query: `WorkflowId STARTS_WITH 'held-cancelled' AND ExecutionStatus = 'Running'`,
      })) {
        return undefined;
      }
      return true;
    },
    300_000,
    () => 'a workflow of the run goes on',
  );
});
