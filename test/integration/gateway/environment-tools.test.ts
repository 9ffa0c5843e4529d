import { readdirSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Hono } from 'hono';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Episode } from '../../../core/episode/episode.ts';
import type { Context } from '../../../dashboard/context.ts';
import { episodePage } from '../../../dashboard/pages/episode.tsx';
import { TokenizersOfRuns } from '../../../runs/episodes/token-texts.ts';
import type { Sources } from '../../../runs/sources.ts';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import { loadTrajectories, rolloutKeys } from '../../../store/rollout/trajectories.ts';
import { briefSpec } from '../../support/brief-spec.ts';
import { sentBy } from '../../support/depot-module.ts';
import { killAndReplace } from '../../support/kill-workers.ts';
import { until } from '../../support/run-client.ts';
import { startTestInstallation } from '../../support/test-installation.ts';
import type { TestInstallation } from '../../support/test-installation.ts';
import { inOrder } from '../../support/tiny-spec.ts';
import { bubblewrap, LEFT_OUT } from '../sandbox/available.ts';

// An agent works with the tools of its environment: its calls are made once, whatever is killed, and verifiers see the session.

const AGENT = path.resolve(import.meta.dirname, 'tools-agent.mjs');

let installation: TestInstallation;
let store: ObjectStore;
let scratch: string;
let letters: string;

beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), 'gradus-depot-'));
  letters = path.join(scratch, 'letters');
  await writeFile(letters, '');
  installation = await startTestInstallation({
    env: {
      GRADUS_ENVIRONMENTS: path.resolve(import.meta.dirname, '../../support/depot-module.ts'),
      GRADUS_TEST_CALLS: letters,
    },
  });
  store = await ObjectStore.connect(installation.settings.store);
}, 600_000);
afterAll(async () => {
  store?.close();
  await installation?.remove();
  await rm(scratch, { recursive: true, force: true });
});

const tasks = [{ environment: 'depot', levels: [1] }];

function spec(over: object = {}) {
  const brief = briefSpec();
  const [warmStart, rl] = brief.stages;
  return {
    ...brief,
    agent: {
      command: [process.execPath, AGENT],
      timeoutSeconds: 120,
      concurrency: 2,
      environmentTools: { maxCalls: 10 },
      ...over,
    },
    sampling: { maxTurns: 3, maxCompletionTokens: 120 },
    reward: { components: [{ verifier: 'packed', role: 'outcome', weight: 1 }] },
    stages: inOrder(
      { ...warmStart, tasks, updatesPerRound: 40, graduation: { successAtLeast: 0, tasksPerLevel: 1 } },
      {
        ...rl,
        tasks,
        maxSteps: 1,
        groupsPerStep: 2,
        groupsPerWorkflow: 2,
        graduation: { successAtLeast: 0, tasks: 1, everySteps: 1 },
      },
    ),
    evaluation: { tasks, count: 1 },
  };
}

async function episodesOf(run: string): Promise<Episode[]> {
  const keys = await rolloutKeys(store, run, 'rl');
  const groups = await Promise.all(
    keys.map(async (key) => loadTrajectories(store, (await store.head(key))!)),
  );
  return groups.flatMap(({ episodes }) => episodes);
}

/** Weights at the end of the run that nobody disturbed. */
let undisturbed: string;

test('its calls are recorded in the episode, and what verifiers judge is the session that they acted on', async () => {
  const result = await (await installation.runs.start('alone', spec())).result();
  expect(result.checkpoint.weights).not.toBe(result.reference!.weights);
  undisturbed = result.checkpoint.weights;
  const episodes = await episodesOf('alone');
  expect(episodes).toHaveLength(8);
  for (const { calls, session, turns, status, outcome } of episodes) {
    expect(status.kind).toBe('answered');
    const packed = calls!.filter(({ call }) => call.name === 'pack');
    expect(calls!.map(({ call }) => call.name)).toEqual(['send', ...packed.map(() => 'pack')]);
    expect(calls![0]!.observation.text).toBe('sent to the house');
    expect(packed.map(({ observation }) => observation.text)).toEqual(
      packed.map((_, i) => `${i + 1} packed`),
    );
    expect(session!.state).toEqual({ packed: [...packed.slice(1).map(() => 'cup'), 'lid'] });
    expect(turns).toHaveLength(2);
    expect(outcome).toMatchObject({ kind: 'scored', reward: Math.min(1, packed.length / 4) });
  }
  const sent = await sentBy('alone', letters);
  expect(new Set(sent).size).toBe(8);
  expect(sent).toHaveLength(8);
  const app = new Hono();
  const sources = { store } as unknown as Sources;
  episodePage(app, { ...({} as Context), sources, tokenizers: new TokenizersOfRuns(store) });
  const page = await (await app.request('/runs/alone/episodes/rl/1/0/0')).text();
  const told = page.replaceAll(/<[^>]+>/gu, ' ').replaceAll(/\s+/gu, ' ');
  expect(told).toContain('calls send {&quot;to&quot;:&quot;the house&quot;}');
  expect(told).toContain('sent to the house');
}, 600_000);

test('killed between two calls, the worker and its agents, no call is made twice, and the weights are the same', async () => {
  const hold = path.join(scratch, 'hold');
  // One in the test of the warm start and one in the step come through.
  await writeFile(hold, '2');
  const handle = await installation.runs.start('killed', spec({ env: { HOLD: hold } }));
  await until(
    () => Promise.resolve(waitingAt('hold') >= 2 || undefined),
    300_000,
    () => `${waitingAt('hold')} agents wait between their calls`,
  );
  const before = await sentBy('killed', letters);
  await killAndReplace(installation.workers, 'rollout');
  await rm(hold);
  const result = await handle.result();
  expect(result.checkpoint.weights).toBe(undisturbed);
  const after = await sentBy('killed', letters);
  expect(after.slice(0, before.length)).toEqual(before);
  expect(after).toHaveLength(8);
  expect(new Set(after).size).toBe(8);
  const [alone, killed] = [await episodesOf('alone'), await episodesOf('killed')];
  const told = (episodes: Episode[]) =>
    episodes.map(({ calls }) => calls!.map(({ call, observation }) => [call, observation.text]));
  expect(told(killed)).toEqual(told(alone));
}, 600_000);

test('killed in a call that must be made once only, it is not made again, and its episode has failed', async () => {
  await writeFile(`${letters}.hold`, '3');
  const handle = await installation.runs.start('lost', spec());
  const waiting = (await sentAfter('lost', 5)).slice(3);
  await killAndReplace(installation.workers, 'rollout');
  await rm(`${letters}.hold`);
  await handle.result();
  const after = await sentBy('lost', letters);
  expect(new Set(after).size).toBe(after.length);
  expect(after).toHaveLength(8);
  const episodes = await episodesOf('lost');
  for (const key of waiting) {
    const { status, outcome } = episodes[Number(key.split('/').at(-2))]!;
    expect(status).toMatchObject({
      kind: 'failed',
      boundary: 'infra',
      reason: expect.stringContaining('whether send was called nobody can say') as string,
    });
    expect(outcome).toMatchObject({ kind: 'failed' });
  }
  expect(episodes.filter(({ status }) => status.kind === 'answered')).toHaveLength(6);
}, 600_000);

test.skipIf(!bubblewrap)(
  `in the sandbox it has the same tools${LEFT_OUT}`,
  async () => {
    const sandbox = { folder: import.meta.dirname, read: [path.resolve('node_modules')], memoryMiB: 512 };
    const boxed = await (await installation.runs.start('boxed', spec({ sandbox }))).result();
    expect(boxed.checkpoint.weights).toBe(undisturbed);
  },
  600_000,
);

/** The letters of a run, once there are so many. */
const sentAfter = (run: string, count: number): Promise<string[]> =>
  until(
    async () => {
      const sent = await sentBy(run, letters);
      return sent.length >= count ? sent : undefined;
    },
    300_000,
    () => `${run} has not sent ${count} letters`,
  );

/** Agents that have waited there. */
const waitingAt = (hold: string): number =>
  readdirSync(scratch).filter((name) => new RegExp(`^${hold}\\.\\d+$`, 'u').test(name)).length;
