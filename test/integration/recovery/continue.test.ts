import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { RolloutGroup } from '../../../core/episode/episode.ts';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import { loadTrajectories, rolloutKeys } from '../../../store/rollout/trajectories.ts';
import { loadBatch } from '../../../store/training/batches.ts';
import { batchKey, versionKey } from '../../../store/keys.ts';
import { readSteps } from '../../../store/training/step-facts.ts';
import { parsePlace, placeOf } from '../../../runs/episodes/place.ts';
import type { curriculum } from '../../../workflows/curriculum/curriculum.ts';
import { DONE } from '../../support/ended.ts';
import { killHits } from '../../support/kill-workers.ts';
import { recompute } from '../../support/recompute.ts';
import { until } from '../../support/run-client.ts';
import { startTestInstallation } from '../../support/test-installation.ts';
import type { TestInstallation } from '../../support/test-installation.ts';
import { inOrder, tinySpec } from '../../support/tiny-spec.ts';

// Episodes that go on with the newest weights after long calls: real servers and workers, SIGKILL, and a run that is made
// again from what it has kept.

const MODULE = fileURLToPath(new URL('../../support/gated-calculator.ts', import.meta.url));
let installation: TestInstallation;
let gate: string;

const spec = (collect: object) => {
  const tiny = tinySpec({ maxSteps: 4 });
  const [warmStart, rl] = tiny.stages;
  return {
    ...tiny,
    // So that it calls the tool.
    stages: inOrder(
      { ...warmStart, updatesPerRound: 250, maxRounds: 1 },
      {
        ...rl,
        tasks: [{ environment: 'calculator-gated', levels: [1] }],
        groupsPerStep: 8,
        groupsPerWorkflow: 2,
        numGenerations: 4,
        algorithm: { ...rl.algorithm, importanceCap: 2 },
        collect,
      },
    ),
  };
};
const GOES_ON = { kind: 'asynchronous', maxStaleness: 2, onNewWeights: 'continue' };

beforeAll(async () => {
  const stateDir = await mkdtemp(path.join(tmpdir(), 'gradus-test-'));
  gate = path.join(stateDir, 'gate');
  installation = await startTestInstallation({
    stateDir,
    env: {
      GRADUS_ENVIRONMENTS: MODULE,
      // Those whose tasks were drawn for the second step: the third is the last one that may take them.
      GRADUS_TEST_GATED: 'goes-on/rl/2/',
      GRADUS_TEST_GATE: gate,
    },
  });
}, 600_000);

afterAll(() => installation?.remove());

async function withStore<T>(use: (store: ObjectStore) => Promise<T>): Promise<T> {
  const store = await ObjectStore.connect(installation.settings.store);
  try {
    return await use(store);
  } finally {
    store.close();
  }
}

const stepsOf = async (run: string) =>
  (await withStore((store) => readSteps(store, run))).filter(({ stage }) => stage === 'rl');

const groupsOf = (run: string): Promise<RolloutGroup[]> =>
  withStore(async (store) => {
    const keys = await rolloutKeys(store, run, 'rl');
    return Promise.all(keys.map(async (key) => loadTrajectories(store, (await store.head(key))!)));
  });

/** Episodes whose turns are of several weights. */
const mixedIn = (groups: readonly RolloutGroup[]): number =>
  groups
    .flatMap(({ episodes }) => episodes)
    .filter(({ turns }) => new Set(turns.map(({ weights }) => weights)).size > 1).length;

/** Kills the rollout worker while it goes on with an episode of a run after a call, and proves that it hit. */
async function killWhileGoingOn(run: string): Promise<void> {
  const { runs, workers } = installation;
  const query = `WorkflowType = "followEpisodes" AND GradusRun = "${run}" AND ExecutionStatus = "Running"`;
  await until(
    async () => {
      for await (const { workflowId } of runs.client.workflow.list({ query })) {
        if (!workflowId.startsWith(`${run}/rl/`)) continue;
        if (await killHits({ runs, workers }, 'rollout', workflowId, 'resume', { held: true })) return true;
      }
      return undefined;
    },
    300_000,
    () => `no group of ${run} could be hit while it was sampled`,
  );
}

test('without staleness an episode that would go on has nothing to go on with, and the run is an on-policy one', async () => {
  const weightsOf = async (run: string, collect: object): Promise<string> => {
    const { end, checkpoint } = await (await installation.runs.start(run, spec(collect))).result();
    expect(end).toEqual(DONE);
    return checkpoint.weights;
  };
  const plain = await weightsOf('plain', { kind: 'on-policy' });
  expect(await weightsOf('none-stale', { ...GOES_ON, maxStaleness: 0 })).toBe(plain);
  expect(mixedIn(await groupsOf('none-stale'))).toBe(0);
}, 600_000);

test('killed while episodes go on with newer weights, a run keeps its bound, and can be made again to the bit', async () => {
  const { runs } = installation;
  const run = await runs.start('goes-on', spec(GOES_ON));
  await until(
    () => withStore((store) => store.head(versionKey('goes-on', 'rl', 2))),
    300_000,
    () => 'the first two steps did not come to their end without the groups whose calls wait',
  );
  await writeFile(gate, '');
  await killWhileGoingOn('goes-on');
  const { end, checkpoint } = await run.result();
  expect(end).toEqual(DONE);

  const groups = await groupsOf('goes-on');
  const mixed = mixedIn(groups);
  expect(mixed).toBeGreaterThan(0);
  const steps = await stepsOf('goes-on');
  expect(steps).toHaveLength(4);
  for (const { rollout } of steps) {
    expect(rollout!.staleness).toBeLessThanOrEqual(2);
    expect(rollout!.sampledByStaleness!.reduce((a, b) => a + b)).toBe(rollout!.sampledTokens);
    expect(rollout!.episodes).toBe(8 * 4);
  }

  // Each is found by the place that lists of episodes print.
  for (const { id } of groups) {
    const place = `goes-on/rl/1/${id.slice('group-'.length)}/0`;
    expect(placeOf(parsePlace(place))).toBe(place);
  }

  // The learner is told the same of each token.
  const counted = await withStore(async (store) => {
    const all = await Promise.all(
      steps.map(async ({ stageStep, rollout, learner }) => {
        const ref = await store.head(batchKey('goes-on', 'rl', stageStep));
        const { streams, mask } = await loadBatch(store, ref!);
        const ages = streams.staleness?.filter((_, i) => mask[i] === 1);
        return { ages, sampled: rollout!.sampledByStaleness!, gaps: learner?.logprobGapByStaleness };
      }),
    );
    return all.filter(({ ages }) => ages !== undefined);
  });
  expect(counted.length).toBeGreaterThan(0);
  for (const { ages, sampled, gaps } of counted) {
    expect(sampled.map((_, age) => ages!.filter((one) => one === age).length)).toEqual(sampled);
    for (const { staleness, tokens } of gaps ?? []) expect(tokens).toBeLessThanOrEqual(sampled[staleness]!);
  }

  // Who gives the command while the run is being made again joins that.
  const [stdout, joined] = await Promise.all([
    recompute(installation.stateDir, 'goes-on'),
    recompute(installation.stateDir, 'goes-on'),
  ]);
  expect(joined).toBe(stdout);
  expect(stdout).toContain('goes-on and goes-on-recomputed do not part in the ');
  expect(stdout).toContain('all facts and the weights are the same');
  const again = await runs.client.workflow.getHandle<typeof curriculum>('goes-on-recomputed').result();
  expect(again.checkpoint.weights).toBe(checkpoint.weights);
  expect(mixedIn(await groupsOf('goes-on-recomputed'))).toBeGreaterThan(0);
}, 900_000);
