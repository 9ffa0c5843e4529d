import { afterAll, beforeAll, expect, test } from 'vitest';
import { ids } from '../../../core/names.ts';
import { isRewarded } from '../../../core/episode/outcome.ts';
import type { CurriculumResult } from '../../../core/training/curriculum.ts';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import { loadTrajectories, rolloutKeys } from '../../../store/rollout/trajectories.ts';
import { readSteps } from '../../../store/training/step-facts.ts';
import { briefSpec } from '../../support/brief-spec.ts';
import { DONE } from '../../support/ended.ts';
import { killInActivity } from '../../support/kill-workers.ts';
import { storedFacts } from '../../support/stored-facts.ts';
import { startTestInstallation } from '../../support/test-installation.ts';
import type { TestInstallation } from '../../support/test-installation.ts';

// A run that samples, trains an ensemble of reward models of what was judged, and is then judged by it: killed in the last two,
// it ends with the same weights, models and verdicts.

let installation: TestInstallation;
let store: ObjectStore;
let leftAlone: CurriculumResult;

const brief = briefSpec({ maxSteps: 2 });
const [warmStart, rl] = brief.stages;
const { tasks } = rl;
const sampled = {
  groupsPerStep: 32,
  groupsPerWorkflow: 8,
  graduation: { ...rl.graduation, successAtLeast: 0.5 },
};
const spec = {
  ...brief,
  model: { ...brief.model, hiddenSize: 64, intermediateSize: 128, attentionHeads: 4, keyValueHeads: 2 },
  reward: {
    ...brief.reward,
    components: [
      { verifier: 'exact-match', role: 'outcome', weight: 1 },
      { verifier: 'format', role: 'bonus', weight: 0.2, gatedBy: 'exact-match' },
    ],
    rules: [{ kind: 'process', verifier: 'exact-match', by: 'minimum', weight: 0.1 }],
    model: { stage: 'judge' },
  },
  stages: [
    // Models learn from what some samples solve and others do not: it goes on until tasks are solved, on any processor.
    {
      ...warmStart,
      maxRounds: 12,
      optimizer: { learningRate: 0.005 },
      graduation: { successAtLeast: 0.1, tasksPerLevel: 32 },
    },
    { ...rl, ...sampled },
    {
      kind: 'reward',
      name: 'judge',
      tasks,
      episodes: { stage: 'rl' },
      models: 2,
      heldOut: 0.4,
      minibatch: 16,
      maxRounds: 2,
      graduation: { aucAtLeast: 0 },
    },
    { ...rl, ...sampled, name: 'judged' },
  ],
};

beforeAll(async () => {
  installation = await startTestInstallation({
    processes: [['orchestrator', 'verifier', 'tool'], ['rollout'], ['learner']],
  });
  store = await ObjectStore.connect(installation.settings.store);
  leftAlone = await (await installation.runs.start('left-alone', spec)).result();
}, 600_000);

afterAll(async () => {
  store?.close();
  await installation?.remove();
});

const judgedIn = async (run: string, stage: string) => {
  const keys = await rolloutKeys(store, run, stage);
  const groups = await Promise.all(
    keys.map(async (key) => loadTrajectories(store, (await store.head(key))!)),
  );
  return groups.flatMap(({ tasks: of, episodes }) =>
    episodes.map((episode) => ({ split: of[episode.task]!.ref.split, episode })),
  );
};

test('the stage leaves its models and the policy as it was, and says how well they judge', async () => {
  expect(leftAlone.end).toEqual(DONE);
  expect(leftAlone.stages.map(({ name, end }) => [name, end])).toEqual([
    ['warm-start', 'graduated'],
    ['rl', expect.any(String)],
    ['judge', 'graduated'],
    ['judged', expect.any(String)],
  ]);
  const steps = await readSteps(store, 'left-alone');
  const ofStage = steps.filter(({ stage }) => stage === 'judge');
  expect(ofStage.map(({ rewardModel }) => rewardModel?.episodes ?? null)).toEqual([null, expect.any(Number)]);
  const before = steps.findLast(({ stage }) => stage === 'rl')!;
  expect(ofStage.at(-1)!.checkpoint.weights).toBe(before.checkpoint.weights);
  expect(ofStage[0]!.learner!.critic!.accuracy).toBeGreaterThan(0);
});

test('training episodes earn what the models say, and the verifier still says what a success is', async () => {
  const of = await judgedIn('left-alone', 'judged');
  const trained = of.filter(({ split }) => split === 'train');
  expect(trained.length).toBeGreaterThan(0);
  let apart = 0;
  for (const { episode } of trained) {
    const { outcome } = episode;
    if (!outcome || !isRewarded(outcome)) continue;
    const decisive = outcome.components.find(({ verifier }) => verifier === 'exact-match')!;
    const { model } = decisive;
    // What was cut off is the verifier's.
    expect(model === undefined).toBe(outcome.kind === 'truncated');
    if (!model) continue;
    expect(model.members).toHaveLength(2);
    expect(model.steps).toHaveLength(Math.max(1, episode.turns.length));
    expect(decisive.contribution).toBe(model.score);
    expect(model.score).toBeLessThanOrEqual(Math.max(...model.members));
    expect([0, 1]).toContain(decisive.score);
    const process = outcome.components.find(({ verifier }) => verifier.startsWith('rule:process'))!;
    expect(process.score).toBeCloseTo(Math.min(...model.steps), 12);
    if (model.uncertainty > 0) apart++;
  }
  // Models of different draws are different models.
  expect(apart).toBeGreaterThan(0);
  const heldOut = [
    ...(await judgedIn('left-alone', 'judged.held-out')),
    ...(await judgedIn('left-alone', 'after')),
  ];
  expect(heldOut.length).toBeGreaterThan(0);
  for (const { episode } of [...heldOut, ...(await judgedIn('left-alone', 'rl'))]) {
    const { outcome } = episode;
    if (outcome && isRewarded(outcome)) expect(outcome.components.some(({ model }) => model)).toBe(false);
  }
});

test('the facts of a step have what the models said beside what was so', async () => {
  const steps = await readSteps(store, 'left-alone');
  for (const { rollout } of steps.filter(({ stage }) => stage === 'judged')) {
    const { model, contribution, score } = rollout!.components['exact-match']!;
    expect(model!.judged).toBe(rollout!.outcomes.scored);
    expect(contribution).toBeCloseTo(model!.score, 9);
    expect(model!.score - score).toBeCloseTo(model!.excess, 9);
  }
});

test('a run that is killed while a model is trained and while it judges ends with the same weights, models and verdicts', async () => {
  const { runs, workers } = installation;
  const handle = await runs.start('killed', spec);
  const judge = () => ids.stage('killed', 'judge');
  await killInActivity({ workers, runs }, judge, 'trainStep', 'learner');
  await killInActivity(
    { workers, runs },
    (step) => [0, 1, 2, 3].map((group) => ids.group('killed', 'judged', step - 1, group)),
    'judgeEpisodes',
    'learner',
    { held: true },
  );
  const result = await handle.result();

  expect(result.checkpoint.weights).toBe(leftAlone.checkpoint.weights);
  // What tools took is wall time.
  const said = async (run: string) =>
    (await judgedIn(run, 'judged')).map(({ episode: { tokens, outcome } }) => ({ tokens, outcome }));
  expect(await said('killed')).toEqual(await said('left-alone'));
  expect(await storedFacts(store, 'killed')).toEqual(await storedFacts(store, 'left-alone'));
}, 600_000);
