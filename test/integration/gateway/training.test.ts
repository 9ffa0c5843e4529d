import { rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import { loadTrajectories } from '../../../store/rollout/trajectories.ts';
import { batchKey, rolloutKey } from '../../../store/keys.ts';
import { turns } from '../../../gateway/stored-turn.ts';
import { TurnTree } from '../../../gateway/turn-tree.ts';
import { pathsOf } from '../../../core/episode/paths.ts';
import { groupId, ids } from '../../../core/names.ts';
import { loadBatch } from '../../../store/training/batches.ts';
import { briefSpec } from '../../support/brief-spec.ts';
import { killAndReplace } from '../../support/kill-workers.ts';
import { killAll, processesBelow } from '../../support/processes-below.ts';
import { until } from '../../support/run-client.ts';
import { startTestInstallation } from '../../support/test-installation.ts';
import { bubblewrap, LEFT_OUT } from '../sandbox/available.ts';
import type { TestInstallation } from '../../support/test-installation.ts';
import { hardestGoal, inOrder } from '../../support/tiny-spec.ts';

// A run trains on the episodes of an agent that knows nothing of Gradus and branches, and a kill changes nothing of what it
// learns.

const AGENT = path.resolve(import.meta.dirname, 'branching-agent.mjs');

let installation: TestInstallation;
let store: ObjectStore;

beforeAll(async () => {
  installation = await startTestInstallation();
  store = await ObjectStore.connect(installation.settings.store);
}, 600_000);
afterAll(async () => {
  store?.close();
  await installation?.remove();
});

/** The brief curriculum by an agent, each of whose episodes is a process. */
function spec(agent: object) {
  const brief = briefSpec();
  const [warmStart, rl] = brief.stages;
  return {
    ...brief,
    agent,
    sampling: { ...brief.sampling, maxTurns: 4 },
    stages: inOrder(
      { ...warmStart, graduation: { successAtLeast: 0, tasksPerLevel: 2 } },
      {
        ...rl,
        groupsPerStep: 2,
        groupsPerWorkflow: 2,
        graduation: { successAtLeast: hardestGoal(2, 1), tasks: 2, everySteps: 2 },
      },
    ),
    evaluation: { ...brief.evaluation, count: 2 },
  };
}
/** Weights at the end of the run that nobody disturbed. */
let undisturbed: string | undefined;
const agent = { command: [process.execPath, AGENT], timeoutSeconds: 240, concurrency: 2 };

test('killed in mid-episode, the worker and an agent, the run ends with the same weights', async () => {
  const { runs, workers } = installation;
  const alone = await (await runs.start('alone', spec(agent))).result();
  expect(alone.checkpoint.weights).not.toBe(alone.reference!.weights);
  undisturbed = alone.checkpoint.weights;

  // The agents of its first step are held in mid-episode until the worker is killed, and then one of those that the next worker has started.
  const gate = path.join(installation.stateDir, 'gate');
  const first = await loadTrajectories(store, (await store.head(rolloutKey('alone', 'rl', 1, groupId(0))))!);
  await writeFile(gate, first.tasks[0]!.prompt);
  const held = { ...agent, command: [...agent.command, gate] };
  const handle = await runs.start('killed', spec(held));
  await until(
    async () => {
      const keys = await store.list('runs/killed/parts/rl/000001/0/');
      return keys.some(({ key }) => key.includes('/turns/')) || undefined;
    },
    300_000,
    () => 'no agent had a turn in step 1',
  );
  const before = new Set(processesBelow(gate));
  expect(before.size).toBeGreaterThan(0);
  await killAndReplace(workers, 'rollout');
  const next = await until(
    () => Promise.resolve(processesBelow(gate).find((pid) => !before.has(pid))),
    300_000,
    () => 'no agent was started again',
  );
  killAll([next]);
  await rm(gate);
  const killed = await handle.result();

  expect(killed.checkpoint.weights).toBe(alone.checkpoint.weights);
  const { events } = await runs.client.workflow.getHandle(ids.group('killed', 'rl', 1, 0)).fetchHistory();
  const attempts = events!.map((one) => one.activityTaskStartedEventAttributes?.attempt ?? 0);
  expect(Math.max(...attempts)).toBeGreaterThan(1);
});

test.skipIf(!bubblewrap)(`in the sandbox the agent makes the same run${LEFT_OUT}`, async () => {
  const sandbox = { folder: import.meta.dirname, memoryMiB: 512 };
  const boxed = await (await installation.runs.start('boxed', spec({ ...agent, sandbox }))).result();
  expect(boxed.checkpoint.weights).not.toBe(boxed.reference!.weights);
  expect(boxed.checkpoint.weights).toBe(undisturbed);

  const secret = { command: ['sh'], sandbox: { folder: '/' } };
  await expect((await installation.runs.start('open', spec(secret))).result()).rejects.toMatchObject({
    cause: { cause: { message: expect.stringMatching(/agent.sandbox.folder: shows the agent/) as string } },
  });
});

test('what is trained is what was sampled, path by path, and each token once', async () => {
  const group = await loadTrajectories(store, (await store.head(rolloutKey('alone', 'rl', 1, groupId(0))))!);
  expect(group.episodes).toHaveLength(8);
  for (const [i, episode] of group.episodes.entries()) {
    expect(episode.status.kind).not.toBe('failed');
    const { keys } = await store.listFolder(`runs/alone/parts/rl/000001/0/agent-${i}/turns/`);
    const tree = new TurnTree();
    for (const key of keys) tree.add((await store.find(key, turns))!);
    const { promptTokens } = group.tasks[episode.task]!;
    const paths = pathsOf(episode);
    const along = <T>(values: readonly T[]) => paths.map(({ places }) => places.map((at) => values[at]!));
    expect(along(episode.tokens).map((tokens) => [...promptTokens, ...tokens])).toEqual(
      tree.rows().map((row) => [...row.promptTokens, ...row.tokens]),
    );
    const sampled = tree.rows().map(({ mask, tokens }) => tokens.filter((_, at) => mask[at] === 1));
    const trained = along(episode.mask).map((mask, p) =>
      along(episode.tokens)[p]!.filter((_, at) => mask[at] === 1),
    );
    expect(trained).toEqual(sampled);
    const ofTurns = tree.all.flatMap(({ tokens }) => tokens).length;
    expect(episode.mask.filter((bit) => bit === 1)).toHaveLength(ofTurns);
  }
  expect(group.episodes.some(({ branches }) => branches!.length >= 2)).toBe(true);
});

test('the branches of an episode are in one update, as parts of it', async () => {
  const batch = await loadBatch(store, (await store.head(batchKey('alone', 'rl', 1)))!);
  const episodes = [...batch.sequences.episode!];
  expect(new Set(episodes).size).toBeLessThan(episodes.length / 2);
  for (const update of batch.updates) {
    const own = new Set(Array.from(update, (sequence) => episodes[sequence]!));
    expect(update).toHaveLength(episodes.filter((episode) => own.has(episode)).length);
  }
});

test('a run whose agent the worker cannot start fails before anything is spent, and says why', async () => {
  const handle = await installation.runs.start('refused', spec({ command: ['no-such-agent'] }));
  await expect(handle.result()).rejects.toMatchObject({
    cause: { cause: { message: expect.stringMatching(/"no-such-agent" is no program/) as string } },
  });
  expect(await store.list('runs/refused/checkpoints/')).toEqual([]);
});
