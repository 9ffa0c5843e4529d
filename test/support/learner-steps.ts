import type { CheckpointRef } from '../../core/refs.ts';
import type { TrainRequest, TrainResult } from '../../core/requests/learner.ts';
import type { ModelConfig, Weights } from '../../core/model/config.ts';
import { newModelFiles } from '../../engine/new-model-files.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';
import { putBatch } from '../../store/training/batches.ts';
import { saveCheckpoint } from '../../store/training/checkpoints.ts';
import { CASE_MODEL, caseBatch } from './engine/learner-cases.ts';
import type { LearnerCase } from './engine/learner-cases.ts';
import { lively } from './engine/tiny.ts';

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

const begin = (store: ObjectStore, run: string, model: ModelConfig, seed: number): Promise<CheckpointRef> =>
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

/** A checkpoint to begin with, and the request of a step that goes on from one. */
export async function caseOf(
  store: ObjectStore,
  run: string,
  one: LearnerCase,
): Promise<{ first: CheckpointRef; request: (step: number, parent: CheckpointRef) => TrainRequest }> {
  const model = one.model ?? CASE_MODEL;
  const first = await begin(store, run, model, 1);
  const { ref: batch } = await putBatch(store, `runs/${run}/batch.safetensors`, caseBatch(one));
  const reference = one.reference ? await begin(store, `${run}-reference`, model, 5) : null;
  const teachers = await Promise.all(
    Array.from({ length: one.teachers ?? 0 }, (_, i) => begin(store, `${run}-teacher-${i}`, model, 7 + i)),
  );
  const request = (step: number, parent: CheckpointRef): TrainRequest => ({
    run,
    stage: 'rl',
    stageStep: step,
    step,
    parent,
    batch,
    objective: one.objective,
    optimizer,
    resetOptimizer: false,
    seed: 11,
    reference,
    ...(teachers.length > 0 && { teachers }),
    ...one.more,
  });
  return { first, request };
}

/** Two steps; the second goes on from what the first has kept. */
export async function twoSteps(
  store: ObjectStore,
  run: string,
  one: LearnerCase,
  train: (request: TrainRequest) => Promise<TrainResult>,
): Promise<TrainResult[]> {
  const { first, request } = await caseOf(store, run, one);
  const before = await train(request(1, first));
  return [before, await train(request(2, before.checkpoint))];
}

const norm = (numbers: Iterable<number>): number => {
  let sum = 0;
  for (const number of numbers) sum += number * number;
  return Math.sqrt(sum);
};

/** ‖a − b‖ over all weights, of the same names in the same order. */
export function apart(a: Weights, b: Weights): number {
  if ([...b.keys()].join() !== [...a.keys()].join()) throw new Error('the weights are of other names');
  return norm(
    [...a].flatMap(([name, { data }]) => {
      const other = b.get(name)!.data;
      return Array.from(data, (value, i) => value - other[i]!);
    }),
  );
}
export const sizeOf = (weights: Weights): number =>
  norm([...weights.values()].flatMap(({ data }) => [...data]));
