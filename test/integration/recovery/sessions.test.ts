import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ImageRef } from '../../../core/episode/episode.ts';
import { ids } from '../../../core/names.ts';
import type { GroupResult } from '../../../core/requests/verification.ts';
import { loadImage } from '../../../store/rollout/images.ts';
import { loadTrajectories, rolloutKeys } from '../../../store/rollout/trajectories.ts';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import { serveHouses } from '../../support/house-server.ts';
import { killAndReplace, killInActivity } from '../../support/kill-workers.ts';
import { until } from '../../support/run-client.ts';
import type { RunClient } from '../../support/run-client.ts';
import { startTestInstallation } from '../../support/test-installation.ts';
import type { TestInstallation } from '../../support/test-installation.ts';
import { hardestGoal, tinySpec } from '../../support/tiny-spec.ts';

// Durable runs in environments with state, whose workers are killed: sessions come back as they say, or the episode is
// counted as failed and never as a zero.

const arms = (ways: readonly string[]) => ways.map((way) => ({ environment: `house-${way}`, levels: [1] }));
const COMING_BACK = ['fold', 'replay', 'snapshot', 'reattach'];

const tiny = tinySpec({ maxSteps: 3, groupsPerStep: 4, groupsPerWorkflow: 4 });
const [warmStart, rl] = tiny.stages;
const reward = { components: [{ verifier: 'environment', role: 'outcome', weight: 1 }] };
const sampling = { maxTurns: 8, maxCompletionTokens: 300 };
const stageOf = (ways: readonly string[], maxSteps: number) => ({
  ...rl,
  tasks: arms(ways),
  groupsPerStep: 4,
  numGenerations: 4,
  maxSteps,
  graduation: { successAtLeast: hardestGoal(4, 1), tasks: 4, everySteps: maxSteps },
});
const warm = {
  ...tiny,
  reward,
  sampling,
  model: { ...tiny.model, hiddenSize: 64, intermediateSize: 128, maxPositions: 512 },
  stages: [
    {
      ...warmStart,
      tasks: arms(COMING_BACK),
      minibatch: 8,
      updatesPerRound: 60,
      maxRounds: 1,
      optimizer: { learningRate: 0.003 },
      graduation: { successAtLeast: 0, tasksPerLevel: 1 },
    },
    stageOf(['fold'], 1),
  ],
  evaluation: { tasks: arms(['fold']), count: 4 },
};
const specOf = (ways: readonly string[], maxSteps: number) => ({
  ...tiny,
  reward,
  sampling,
  model: { from: 'warm' },
  stages: [stageOf(ways, maxSteps)],
  evaluation: { tasks: arms(ways), count: 4 },
});

let server: Awaited<ReturnType<typeof serveHouses>>;
let installation: TestInstallation;
let store: ObjectStore;
let scratch: string;
/** Holds up long calls of the episodes that it names. */
let hold: string;
beforeAll(async () => {
  server = await serveHouses();
  scratch = await mkdtemp(path.join(tmpdir(), 'gradus-houses-'));
  hold = path.join(scratch, 'hold');
  installation = await startTestInstallation({
    processes: [['orchestrator', 'verifier', 'tool'], ['rollout'], ['learner']],
    env: {
      GRADUS_ENVIRONMENTS: path.join(import.meta.dirname, '../../support/houses-module.ts'),
      HOUSES_URL: server.url,
      HOUSES_MS: '30',
      HOUSES_HOLD: hold,
    },
  });
  store = await ObjectStore.connect(installation.settings.store);
  await (await installation.runs.start('warm', warm)).result();
  pinned = await killedInLongCall();
}, 900_000);
afterAll(async () => {
  store?.close();
  await installation?.remove();
  server?.close();
  await rm(scratch, { recursive: true, force: true });
});

const comingBack = specOf(COMING_BACK, 3);
type Handle = Awaited<ReturnType<RunClient['start']>>;
/** It takes a minute until its worker counts as gone, in which nothing else has to wait. */
let pinned: Handle;

/** The first step of it is left alone, in the second the worker goes while calls wait for it. */
async function killedInLongCall(): Promise<Handle> {
  const { runs, workers } = installation;
  await writeFile(hold, 'pinned/rl/2/');
  const handle = await runs.start('pinned', specOf(['pin-slow', 'fold'], 2));
  const page = ids.page('pinned', 'rl', 2, 0, 0);
  await until(
    async () => {
      const seen = await runs.pending(page, 'callTool');
      return typeof seen === 'object' && seen.started ? true : undefined;
    },
    300_000,
    () => 'no long call began',
  );
  await killAndReplace(workers, 'rollout');
  await rm(hold);
  return handle;
}

test('a run whose rollout worker is killed in the middle of sessions ends with the same weights', async () => {
  const { runs, workers } = installation;
  const alone = await (await runs.start('alone', comingBack)).result();
  expect(alone.after!.outcomes).toMatchObject({ failed: 0 });
  const handle = await runs.start('killed', comingBack);
  const group = (step: number): string => ids.group('killed', 'rl', step, 0);
  await killInActivity({ workers, runs }, group, 'advance', 'rollout');
  const killed = await handle.result();
  expect(killed.checkpoint.weights).toBe(alone.checkpoint.weights);
  const shown = await shownIn('alone');
  expect(shown.length, 'images that were shown').toBeGreaterThan(0);
  expect(await shownIn('killed')).toEqual(shown);
  expect(server.houses.houses.size, 'houses left on the server').toBe(0);
}, 900_000);

test('a session that is pinned has its long calls on its worker, and is failed when that is gone', async () => {
  const { runs } = installation;
  const result = await pinned.result();
  expect(result.steps).toBe(2);
  const outcomes = async (step: number) => {
    const { trajectories } = (await runs.client.workflow
      .getHandle(ids.group('pinned', 'rl', step, 0))
      .result()) as GroupResult;
    const { episodes } = await loadTrajectories(store, trajectories!);
    return episodes.map(({ outcome, turns }) => ({ outcome, turns: turns.length }));
  };
  const first = await outcomes(1);
  expect(first.every(({ outcome }) => outcome!.kind !== 'failed')).toBe(true);
  expect(
    first.some(({ turns }) => turns > 2),
    'episodes that went on after a long call',
  ).toBe(true);
  expect((await outcomes(2)).map(({ outcome }) => outcome)).toContainEqual(
    expect.objectContaining({ kind: 'failed', boundary: 'infra' }),
  );
}, 900_000);

/** References of all images of a run, each of which must be there. */
async function shownIn(run: string): Promise<ImageRef[]> {
  const images: ImageRef[] = [];
  for (const key of await rolloutKeys(store, run, 'rl')) {
    const { episodes } = await loadTrajectories(store, (await store.head(key))!);
    images.push(
      ...episodes.flatMap(({ turns }) => turns.flatMap(({ observation }) => observation?.images ?? [])),
    );
  }
  for (const image of new Map(images.map((one) => [one.sha256, one])).values())
    await loadImage(store, run, image);
  return images;
}
