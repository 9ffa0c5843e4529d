import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { durable } from '../../../activities/durable.ts';
import { createRollout } from '../../../activities/rollout/rollout.ts';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import { createTools } from '../../../activities/rollout/tools.ts';
import { createVerification } from '../../../activities/verification/verifiers.ts';
import { historiesFrom, payloadsIn } from '../../support/histories.ts';
import { ids } from '../../../core/names.ts';
import type { GroupRequest } from '../../../core/requests/rollout.ts';
import type { GroupResult } from '../../../core/requests/verification.ts';
import { slowCalculatorEnvironment } from '../../../environments/families/calculator/environment.ts';
import { inThisProcess } from '../../../environments/host/hosted-environment.ts';
import { groupRequest } from '../../support/group-request.ts';
import { poolSaying } from '../../support/saying.ts';
import { startWorkflowLab } from '../../support/workflow-lab.ts';
import type { WorkflowLab } from '../../support/workflow-lab.ts';

// Groups in which every episode waits for a long call, again and again. The policy says one thing; all else is real.

/** Long calls of an episode: the policy calls in each of its turns. */
const CALLS = 3;
const SAMPLES = 16;
/** Events after which the server suggests to continue as new. */
const SUGGESTED = 100;

const environment = slowCalculatorEnvironment({ seconds: 0, failureProbability: 0 });
const calling = '<tool_call>{"name":"calculator","arguments":{"expression":"7*3"}}</tool_call>';
const policies = poolSaying(calling, { maxPositions: 4096 });

let lab: WorkflowLab;
/** What tools read with: what is read through it is counted. */
let ofTools: ObjectStore;
let store: ObjectStore;
beforeAll(async () => {
  const environments = inThisProcess([environment]);
  lab = await startWorkflowLab(
    async ({ settings }) => {
      store = await ObjectStore.connect(settings.store);
      ofTools = await ObjectStore.connect(settings.store);
      return {
        rollout: durable(createRollout({ store, policies, environments })),
        tool: createTools({ store: ofTools, environments }),
        verifier: durable(createVerification({ store, environments })),
      };
    },
    { dynamicConfig: { 'limit.historyCount.suggestContinueAsNew': SUGGESTED } },
  );
}, 600_000);
afterAll(async () => {
  await lab?.stop();
  store?.close();
  ofTools?.close();
});

const request = (run: string, tasks: number): GroupRequest =>
  groupRequest(
    run,
    Array.from({ length: tasks }, (_, index) => ({
      environment: environment.name,
      split: 'train',
      level: 1,
      index,
    })),
    {
      samples: SAMPLES,
      sampling: { temperature: 1, topK: 0, topP: 1, maxTurns: CALLS, maxCompletionTokens: 2000 },
    },
  );

/** Rolls out a group whose episodes all wait, and says what it left behind. */
async function rollOut(episodes: number) {
  const run = `waiting-${episodes}`;
  const read = vi.spyOn(ofTools, 'read');
  const workflowId = ids.group(run, 'rl', 1, 0);
  const begun = performance.now();
  const parent = await lab.runs.client.workflow.start('runOf', {
    taskQueue: 'gradus',
    workflowId: run,
    args: ['rolloutGroup', workflowId, request(run, episodes / SAMPLES)],
  });
  const result = (await parent.result()) as GroupResult;
  const seconds = (performance.now() - begun) / 1000;
  const bytesRead = read.mock.calls.map(([ref]) => ref.bytes);
  read.mockRestore();
  const left = {
    events: 0,
    bytes: 0,
    executions: 0,
    longestFollowed: 0,
    largestPayload: 0,
    refusedTasks: [] as string[],
    calls: [] as string[],
  };
  const root = { workflowId: run, runId: parent.firstExecutionRunId };
  for await (const { type, history, bytes } of historiesFrom(lab.runs.client, root)) {
    const events = history.events ?? [];
    left.executions++;
    left.events += events.length;
    left.bytes += bytes;
    if (type === 'followEpisodes') left.longestFollowed = Math.max(left.longestFollowed, events.length);
    for (const event of events) {
      const failed = event.workflowTaskFailedEventAttributes;
      // A machine that is too busy to go on within two seconds is nobody's refusal.
      if (failed && !failed.failure?.message?.includes('deadlock')) {
        left.refusedTasks.push(`${failed.cause}: ${failed.failure?.message}`);
      }
      const scheduled = event.activityTaskScheduledEventAttributes;
      if (scheduled?.activityType?.name === 'callTool') left.calls.push(scheduled.activityId!);
      for (const { data } of payloadsIn(event)) {
        left.largestPayload = Math.max(left.largestPayload, data?.length ?? 0);
      }
    }
  }
  const measured = {
    ...left,
    eventsPerCall: left.events / (episodes * CALLS),
    bytesPerCall: left.bytes / (episodes * CALLS),
    mostRead: Math.max(...bytesRead),
    spans: result.spans.length,
    // How many spans there are is a matter of when calls came back, and is bounded by itself.
    resultBytes: JSON.stringify({ ...result, spans: [] }).length,
    seconds,
  };
  const { calls, ...shown } = measured;
  console.info(`${episodes} waiting episodes, ${calls.length} calls:`, JSON.stringify(shown));
  return { result, episodes, ...measured };
}

type Left = Awaited<ReturnType<typeof rollOut>>;
/** Of a page of sixteen: what was under way when the server made its suggestion may still come to its end. */
const LONGEST = SUGGESTED + 12 * 16;

function expectBounded({ result, episodes, ...left }: Left): void {
  expect(result.outcomes).toMatchObject({ truncated: episodes });
  expect(result.turns).toBe(episodes * CALLS);
  // Each call once, though histories end while others of the page are under way.
  expect(left.calls).toHaveLength(episodes * CALLS);
  expect(left.executions).toBeGreaterThan(2 + episodes / SAMPLES);
  expect(left.longestFollowed).toBeLessThan(LONGEST);
  expect(left.refusedTasks).toEqual([]);
  expect(left.eventsPerCall).toBeLessThan(8);
  expect(left.largestPayload).toBeLessThan(64 * 1024);
  expect(left.spans).toBeLessThan(50);
}

function expectAlike(small: Left, large: Left): void {
  expect(large.mostRead).toBeLessThan(1.25 * small.mostRead);
  expect(large.bytesPerCall).toBeLessThan(1.1 * small.bytesPerCall);
  expect(large.eventsPerCall).toBeLessThan(1.25 * small.eventsPerCall);
  // Of each task that was failed its coordinates, with how many samples solved it.
  expect(large.resultBytes).toBeLessThan(1.1 * small.resultBytes + 100 * (large.episodes / SAMPLES));
}

test('a long call costs the same in a small group and in one of hundreds', async () => {
  const small = await rollOut(48);
  const large = await rollOut(240);
  expectAlike(small, large);
  expectBounded(small);
  expectBounded(large);
}, 600_000);

test.runIf(process.env['GRADUS_SLOW_TESTS'] === '1')(
  'a long call costs the same in a group of 2,048 episodes that all wait',
  async () => {
    const small = await rollOut(96);
    const large = await rollOut(2048);
    expectAlike(small, large);
    expectBounded(large);
  },
  1_800_000,
);
