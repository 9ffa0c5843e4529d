import { afterAll, beforeAll, expect, test } from 'vitest';
import { createTraining } from '../../../activities/training/learner.ts';
import type { CheckpointRef } from '../../../core/refs.ts';
import type { TrainRequest, TrainResult } from '../../../core/requests.ts';
import type { ModelConfig, Weights } from '../../../core/model/config.ts';
import type { Learner } from '../../../engine/learner/contract.ts';
import { createLocalLearner } from '../../../engine/learner/local-learner.ts';
import { newModelFiles } from '../../../engine/new-model-files.ts';
import { keepBatch } from '../../../store/training/batches.ts';
import { loadCheckpoint, saveCheckpoint } from '../../../store/training/checkpoints.ts';
import { CASE_MODEL, caseBatch, LEARNER_CASES } from '../../support/engine/learner-cases.ts';
import type { LearnerCase } from '../../support/engine/learner-cases.ts';
import { lively } from '../../support/engine/tiny.ts';
import { openTestStore } from '../../support/test-store.ts';
import { TorchLines, withTorch } from '../../support/torch-learner.ts';

// Two steps of every loss by the learner of Gradus and by the one in PyTorch, from the same objects of a real store.

const { server, store } = await openTestStore();
const { signal } = new AbortController();

const optimizer = {
  learningRate: 1e-3,
  warmupUpdates: 3,
  beta1: 0.9,
  beta2: 0.999,
  epsilon: 1e-6,
  maxGradientNorm: 1,
};

/** A tokenizer that has no token for the last four rows of the embedding. */
const TOKENIZER = JSON.stringify({
  version: '1.0',
  model: { vocab: Object.fromEntries(Array.from({ length: 60 }, (_, id) => [`t${id}`, id])) },
});

/** The small files of a model, its `config.json` as its makers write it. */
function filesOf(model: ModelConfig) {
  const files = newModelFiles(model, TOKENIZER, { bos: 1, eos: [2], pad: 0 });
  const family = model.biases ? 'qwen2' : model.queryKeyNorm ? 'qwen3' : undefined;
  if (family) {
    const config = JSON.parse(new TextDecoder().decode(files.get('config.json'))) as object;
    const architectures = [`${family[0]!.toUpperCase()}${family.slice(1)}ForCausalLM`];
    const written = JSON.stringify({ ...config, architectures, model_type: family });
    files.set('config.json', new TextEncoder().encode(written));
  }
  return files;
}

const begin = (run: string, model: ModelConfig, seed: number): Promise<CheckpointRef> =>
  saveCheckpoint(store, {
    run,
    stage: 'initialize',
    step: 0,
    backend: 'none',
    createdBy: 'test',
    state: {
      config: { ...model, maskedTokens: [[60, 64]] },
      weights: lively(model, seed),
      firstMoments: new Map(),
      secondMoments: new Map(),
      updates: 0,
    },
    files: filesOf(model),
  });

/** Two steps; the second goes on from what the first has kept. */
async function twoSteps(
  run: string,
  one: LearnerCase,
  train: (request: TrainRequest) => Promise<TrainResult>,
): Promise<TrainResult[]> {
  const model = one.model ?? CASE_MODEL;
  const first = await begin(run, model, 1);
  const { ref: batch } = await keepBatch(store, `runs/${run}/batch.safetensors`, caseBatch(one));
  const reference = one.reference ? await begin(`${run}-reference`, model, 5) : null;
  const teachers = await Promise.all(
    Array.from({ length: one.teachers ?? 0 }, (_, i) => begin(`${run}-teacher-${i}`, model, 7 + i)),
  );
  const results: TrainResult[] = [];
  for (const step of [1, 2]) {
    const request: TrainRequest = {
      run,
      stage: 'rl',
      stageStep: step,
      step,
      parent: results.at(-1)?.checkpoint ?? first,
      batch,
      objective: one.objective,
      optimizer,
      resetOptimizer: false,
      seed: 11,
      reference,
      ...(teachers.length > 0 && { teachers }),
      ...one.more,
    };
    results.push(await train(request));
  }
  return results;
}

const norm = (numbers: Iterable<number>): number => {
  let sum = 0;
  for (const number of numbers) sum += number * number;
  return Math.sqrt(sum);
};

/** ‖a − b‖ over all weights. */
function apart(a: Weights, b: Weights): number {
  expect([...b.keys()]).toEqual([...a.keys()]);
  return norm(
    [...a].flatMap(([name, { data }]) => {
      const other = b.get(name)!.data;
      return Array.from(data, (value, i) => value - other[i]!);
    }),
  );
}
const sizeOf = (weights: Weights): number => norm([...weights.values()].flatMap(({ data }) => [...data]));

function expectNear(got: number | null | undefined, wanted: number | null | undefined, what: string): void {
  if (typeof wanted !== 'number') return expect(got ?? null, what).toBeNull();
  expect(Math.abs(got! - wanted), `${what}: ${got} for ${wanted}`).toBeLessThan(
    1e-5 * Math.max(1, Math.abs(wanted)),
  );
}

await withTorch((python) => {
  let learner: Learner;
  let torch: TorchLines;
  beforeAll(async () => {
    torch = new TorchLines(python, server.environment());
    learner = await createLocalLearner({ backend: 'cpu' });
  });
  afterAll(async () => {
    await torch?.close();
    await learner?.close();
  });

  test.each(LEARNER_CASES.map((one, i) => [one.name, one, i] as const))(
    'two steps of %s are those of the reference',
    async (_, one, i) => {
      const training = createTraining({ store, learner });
      const wanted = await twoSteps(`gradus-${i}`, one, (request) => training.trainStep(request, signal));
      const got = await twoSteps(`torch-${i}`, one, (request) =>
        torch.result<TrainResult>('trainStep', request),
      );
      for (const [step, { metrics, checkpoint }] of got.entries()) {
        const expected = wanted[step]!;
        const { critic, preference, seconds: _, ...figures } = metrics;
        const { critic: itsCritic, preference: itsPreference, ...others } = expected.metrics;
        for (const [name, value] of Object.entries(figures))
          expectNear(value, others[name as keyof typeof figures], `${name} of step ${step + 1}`);
        for (const name of Object.keys(itsCritic ?? {}) as (keyof NonNullable<typeof critic>)[])
          expectNear(critic?.[name], itsCritic![name], `${name} of the critic`);
        for (const name of Object.keys(itsPreference ?? {}) as (keyof NonNullable<typeof preference>)[])
          expectNear(preference?.[name], itsPreference![name], name);

        const [ours, theirs] = [
          await loadCheckpoint(store, expected.checkpoint),
          await loadCheckpoint(store, checkpoint),
        ];
        expect(theirs.manifest.updates).toBe(ours.manifest.updates);
        expect([...theirs.files]).toEqual([...ours.files]);
        const [a, b] = [ours.state, theirs.state];
        expect(b.adapter?.lora).toEqual(a.adapter?.lora);
        const [mine, its] = [a.adapter?.weights ?? a.weights, b.adapter?.weights ?? b.weights];
        expect(apart(mine, its) / sizeOf(mine), 'weights').toBeLessThan(1e-6);
        expect(apart(a.firstMoments, b.firstMoments)).toBeLessThan(1e-4 * (1e-9 + sizeOf(a.firstMoments)));
        expect(apart(a.secondMoments, b.secondMoments)).toBeLessThan(1e-4 * (1e-9 + sizeOf(a.secondMoments)));
        expect(b.critic?.updates).toBe(a.critic?.updates);
        if (a.critic)
          expect(apart(a.critic.weights, b.critic!.weights) / sizeOf(a.critic.weights)).toBeLessThan(1e-6);
      }
    },
    60_000,
  );
});
