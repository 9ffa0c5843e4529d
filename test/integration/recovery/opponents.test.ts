import { afterAll, beforeAll, expect, test } from 'vitest';
import { ids } from '../../../core/names.ts';
import { RandomStream } from '../../../core/random.ts';
import { drawOpponent } from '../../../core/training/league.ts';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import { findCheckpoints } from '../../../store/training/find-checkpoints.ts';
import { readSteps } from '../../../store/training/step-facts.ts';
import { DONE } from '../../support/ended.ts';
import { killAndReplace } from '../../support/kill-workers.ts';
import { opponentsSpec } from '../../support/opponents-spec.ts';
import { until } from '../../support/run-client.ts';
import { startTestInstallation } from '../../support/test-installation.ts';
import type { TestInstallation } from '../../support/test-installation.ts';

// A challenger and a solver: real servers and workers, SIGKILL, stages that continue as new, and a retention that keeps
// nothing but what they need.

let installation: TestInstallation;
// By labels of the majority, whose judgements are a second object of every group that solves; against a league
// that is drawn by how hard it is, which a stage has to carry along.
const SPEC = opponentsSpec({ maxSteps: 4, filter: { min: 0.2, max: 0.8 }, league: true, draw: 'hard' });

beforeAll(async () => {
  installation = await startTestInstallation({
    dynamicConfig: { 'limit.historyCount.suggestContinueAsNew': 60 },
  });
}, 600_000);

afterAll(() => installation?.remove());

test('killed in both stages, a run ends with the same tasks and weights', async () => {
  const { runs, workers, settings } = installation;
  const whole = await (await runs.start('whole', SPEC)).result();
  expect(whole.end).toEqual(DONE);

  const run = await runs.start('killed', SPEC);
  for (const stage of ['challenger', 'solver']) {
    // Its updates are too short to be hit for certain, so all is killed that may be at work.
    const second = ids.group('killed', stage, 2, 0);
    const hasBegun = async () => ((await runs.pending(second, 'advance')) === 'absent' ? undefined : true);
    await until(hasBegun, 240_000, () => `the second step of ${stage} did not begin`);
    await killAndReplace(workers, 'orchestrator', 'rollout', 'verifier', 'learner');
    expect(await runs.pending(ids.stage('killed', stage), 'advance')).not.toBe('closed');
  }
  const killed = await run.result();
  expect(killed.end).toEqual(DONE);
  expect(killed.checkpoint.weights).toBe(whole.checkpoint.weights);

  const store = await ObjectStore.connect(settings.store);
  const stepsOf = async (name: string) =>
    (await readSteps(store, name)).map(({ checkpoint, ...step }) => ({
      ...step,
      circumstances: null,
      weights: checkpoint.weights,
    }));
  const steps = await stepsOf('killed');
  expect(steps).toEqual(await stepsOf('whole'));
  const labels = steps.flatMap(({ rollout }) => rollout?.selfPlay?.labels ?? []);
  // Each step is drawn by what the one before it has left.
  const played = steps.filter(({ stage }) => stage === 'solver');
  for (const [at, { stageStep, rollout, league }] of played.entries()) {
    const opponents = ['warm-start', 'challenger'].map((stage) => ({ stage }));
    const how = { proposer: { stage: opponents.map((one) => one.stage), draw: 'hard' as const } };
    const random = new RandomStream(SPEC.seed, 'self-play', 'opponent', 'solver', stageStep);
    const drawn = drawOpponent(opponents, how, played[at - 1]?.league ?? {}, random);
    const { opponent } = rollout!.selfPlay!;
    expect(opponent).toBe(drawn.stage);
    expect(league![opponent!]!.steps).toBeGreaterThanOrEqual(1);
  }
  expect(labels.reduce((sum, { learnt }) => sum + learnt, 0)).toBeGreaterThan(0);
  const tasks = async (name: string): Promise<string[]> =>
    (await store.list(`runs/${name}/tasks/`)).map(({ key }) => key.split('/').at(-1)!);
  expect(await tasks('killed')).toEqual(await tasks('whole'));

  const left = await findCheckpoints(store, 'killed');
  const ends = ['warm-start', 'challenger', 'solver'].map(
    (name) => steps.findLast((step) => step.stage === name)!.weights,
  );
  const weights = left.checkpoints.map(({ ref }) => ref.weights);
  // The solver begins with the first of them, and the second proposes until the end.
  for (const needed of ends) expect(weights).toContain(needed);
  expect(weights).not.toContain(steps.find((step) => step.stage === 'challenger')!.weights);
  store.close();
}, 600_000);
