import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ids } from '../../../core/names.ts';
import { attemptText, judgePrompt, readPoints } from '../../../core/reward/self-judge.ts';
import type { CurriculumResult } from '../../../core/training/curriculum.ts';
import { figuresOf } from '../../../core/training/figures.ts';
import { calculatorEnvironment } from '../../../environments/families/calculator/environment.ts';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import { loadTrajectories, rolloutKeys } from '../../../store/rollout/trajectories.ts';
import { readSteps } from '../../../store/training/step-facts.ts';
import { briefSpec } from '../../support/brief-spec.ts';
import { DONE } from '../../support/ended.ts';
import { killInActivity } from '../../support/kill-workers.ts';
import { storedFacts } from '../../support/stored-facts.ts';
import { startTestInstallation } from '../../support/test-installation.ts';
import type { TestInstallation } from '../../support/test-installation.ts';

// A policy that learns from a few examples to give points, as the paper's evaluation fine-tuning does, and then judges its own
// episodes: killed while it judges, the run ends with the same weights and verdicts.

let installation: TestInstallation;
let store: ObjectStore;
let folder: string;
let spec: object;
let leftAlone: CurriculumResult;

const RUBRIC = 'One point for each thing that is right.';
const SAMPLES = 2;

const line = (prompt: string, completion: string): string =>
  JSON.stringify({
    prompt: [{ role: 'user', content: prompt }],
    completion: [{ role: 'assistant', content: completion }],
  });

/** How to answer, right or not, and how to judge. */
function examples(): string {
  const calculator = calculatorEnvironment();
  const lines = Array.from({ length: 24 }, (_, index) => {
    const { prompt } = calculator.task({
      environment: 'calculator',
      split: 'train',
      level: 1,
      index,
    });
    const data = attemptText({ task: prompt, turns: [{ wrote: `<answer>${index}</answer>` }] });
    return [
      line(prompt, `${index}`),
      line(judgePrompt(RUBRIC, data, `${index}`.padStart(16, 'a')), `Score: ${index % 6}`),
    ];
  });
  return lines.flat().join('\n');
}

beforeAll(async () => {
  installation = await startTestInstallation({
    processes: [['orchestrator', 'verifier', 'tool'], ['rollout'], ['learner']],
  });
  store = await ObjectStore.connect(installation.settings.store);
  folder = await mkdtemp(path.join(tmpdir(), 'gradus-judge-'));
  const data = path.join(folder, 'examples.jsonl');
  await writeFile(data, examples());
  const brief = briefSpec({ maxSteps: 2 });
  const [warmStart, rl] = brief.stages;
  spec = {
    ...brief,
    model: { ...brief.model, maxPositions: 1024 },
    reward: {
      components: [
        { verifier: 'exact-match', role: 'outcome', weight: 1 },
        { verifier: 'format', role: 'bonus', weight: 0.2 },
      ],
      judge: { rubric: RUBRIC, samples: SAMPLES, temperature: 1, maxTokens: 40 },
    },
    stages: [warmStart, { ...warmStart, name: 'judging', updatesPerRound: 60, minibatch: 8, data }, rl],
  };
  leftAlone = await (await installation.runs.start('left-alone', spec)).result();
}, 600_000);

afterAll(async () => {
  store?.close();
  await installation?.remove();
  await rm(folder, { recursive: true, force: true });
});

const episodesOf = async (run: string, stage: string) => {
  const keys = await rolloutKeys(store, run, stage);
  const groups = await Promise.all(
    keys.map(async (key) => loadTrajectories(store, (await store.head(key))!)),
  );
  return groups.flatMap(({ episodes }) => episodes);
};

test('training episodes earn what the policy gives them, and the verifier still says what a success is', async () => {
  expect(leftAlone.end).toEqual(DONE);
  let judged = 0;
  for (const { outcome } of await episodesOf('left-alone', 'rl')) {
    if (outcome?.kind === 'abstained') {
      expect(outcome.judge!.words.every((words) => readPoints(words) === null)).toBe(true);
      continue;
    }
    if (outcome?.kind !== 'scored') continue;
    judged++;
    const decisive = outcome.components.find(({ verifier }) => verifier === 'exact-match')!;
    const { score, members, judge } = decisive.model!;
    expect([0, 1]).toContain(decisive.score);
    expect(decisive.contribution).toBe(score);
    expect(judge).toMatchObject({ samples: SAMPLES, tokens: expect.any(Number) });
    const points = judge!.words.flatMap((words) => readPoints(words) ?? []);
    expect(points.map((one) => one / 5)).toEqual(members);
    expect(score).toBeCloseTo(members.reduce((sum, one) => sum + one, 0) / members.length, 12);
  }
  expect(judged).toBeGreaterThan(0);
  for (const stage of ['rl.held-out', 'after'])
    for (const { outcome } of await episodesOf('left-alone', stage)) {
      expect(outcome!.kind).not.toBe('abstained');
      if (outcome?.kind === 'scored') expect(outcome.components.some(({ model }) => model)).toBe(false);
    }
});

test('the facts of a step say what the judge gave, what it cost, and how far it agrees with the verifier', async () => {
  const steps = (await readSteps(store, 'left-alone')).filter(({ stage }) => stage === 'rl');
  for (const step of steps) {
    const { outcomes, components, sampledTokens } = step.rollout!;
    const { judge, ...model } = components['exact-match']!.model!;
    expect(model.judged).toBe(outcomes.scored);
    expect(judge!.unjudged).toBe(outcomes.abstained);
    expect(judge!.samples).toBe(SAMPLES * (outcomes.scored + outcomes.abstained));
    const figures = figuresOf(step);
    expect(figures['judge/tokens']).toBe(judge!.tokens);
    expect(figures['judge/unjudged']).toBeCloseTo(
      outcomes.abstained / (outcomes.scored + outcomes.abstained),
    );
    expect(figures['episodes/sampled-tokens']).toBe(sampledTokens + judge!.tokens);
    expect(figures['reward-model/excess']).toBeCloseTo(model.excess / model.compared);
  }
});

test('a run whose rollout worker is killed while it judges ends with the same weights and verdicts', async () => {
  const { runs, workers } = installation;
  const handle = await runs.start('killed', spec);
  await killInActivity(
    { workers, runs },
    (step) => ids.group('killed', 'rl', step - 1, 0),
    'judgeOwn',
    'rollout',
  );
  const result = await handle.result();
  expect(result.checkpoint.weights).toBe(leftAlone.checkpoint.weights);
  const said = async (run: string) =>
    (await episodesOf(run, 'rl')).map(({ tokens, outcome }) => ({ tokens, outcome }));
  expect(await said('killed')).toEqual(await said('left-alone'));
  expect(await storedFacts(store, 'killed')).toEqual(await storedFacts(store, 'left-alone'));
}, 600_000);
