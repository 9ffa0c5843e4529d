import { QUEUES } from '../../core/names.ts';
import type { ModelConfig, Weights } from '../../core/model/config.ts';
import { weightShapes } from '../../core/model/config.ts';
import { normal, philox4x32, randomKey, uniform } from '../../core/random.ts';
import type { BlobRef, CheckpointRef } from '../../core/refs.ts';
import type { ScoreRequest, ScoreResult } from '../../core/requests/batch.ts';
import type { TrainRequest, TrainResult } from '../../core/requests/learner.ts';
import { criticShapes } from '../../engine/learner/critic.ts';
import { adapterShapes } from '../../engine/lora/adapter-shapes.ts';
import { initialAdapter } from '../../engine/lora/initial-adapter.ts';
import { newModelFiles } from '../../engine/new-model-files.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';
import { saveCheckpoint } from '../../store/training/checkpoints.ts';
import type { CheckpointContent } from '../../store/training/checkpoints.ts';
import { HEARTBEAT, RETRY } from '../../workflows/activities.ts';

// The golden files of the learner's contract (docs/learner-contract.md), as this side writes them.

const model: ModelConfig = {
  vocabSize: 6,
  hiddenSize: 4,
  intermediateSize: 4,
  layers: 1,
  attentionHeads: 2,
  keyValueHeads: 1,
  headSize: 2,
  maxPositions: 8,
  rmsNormEpsilon: 1e-6,
  ropeTheta: 10_000,
  tieEmbeddings: true,
};
const lora = { rank: 2, alpha: 4, rsLora: false, targetModules: ['q_proj', 'down_proj'] };

const numbers = (shapes: [name: string, shape: number[]][], label: string): Weights =>
  new Map(
    shapes.map(([name, shape]) => {
      const key = randomKey('golden', label, name);
      const length = shape.reduce((product, extent) => product * extent, 1);
      return [name, { shape, data: Float32Array.from({ length }, (_, i) => normal(key, i)) }];
    }),
  );

const blob = (key: string): BlobRef => ({ key, sha256: 'ab'.repeat(32), bytes: 1234 });
const checkpointRef = (run: string, step: number): CheckpointRef => ({
  manifest: blob(`runs/${run}/checkpoints/00000${step}-cdcdcdcdcdcd/manifest.json`),
  weights: 'cd'.repeat(32),
  step,
});

const optimizer = {
  learningRate: 0.0003,
  warmupUpdates: 10,
  beta1: 0.9,
  beta2: 0.999,
  epsilon: 1e-8,
  maxGradientNorm: 1,
};
const request: TrainRequest = {
  run: 'my-run',
  stage: 'rl',
  stageStep: 2,
  step: 5,
  parent: checkpointRef('my-run', 4),
  batch: blob('runs/my-run/batches/rl/000002.safetensors'),
  objective: {
    kind: 'clipped',
    temperature: 1,
    topK: 0,
    clipRatioLow: 0.2,
    clipRatioHigh: 0.28,
    beta: 0.01,
    aggregation: 'token',
    maxCompletionTokens: 160,
    importanceCap: 2,
  },
  optimizer,
  resetOptimizer: false,
  seed: 5,
  reference: checkpointRef('my-run', 3),
};
const withEverything: TrainRequest = {
  ...request,
  critic: { clip: 0.2, optimizer },
  lora,
  compute: { precision: 'bfloat16', gradientCheckpointing: true, microBatchTokens: 8192 },
};
const distillation: TrainRequest = {
  ...request,
  objective: {
    kind: 'distill',
    divergence: { kind: 'jsd', beta: 0.5 },
    temperature: 0.8,
    aggregation: 'token',
    maxCompletionTokens: 160,
    teacherWeights: [0.25, 0.75],
  },
  reference: null,
  teachers: [checkpointRef('other', 7), checkpointRef('another', 9)],
};
const result: TrainResult = {
  checkpoint: checkpointRef('my-run', 5),
  metrics: {
    loss: 0.125,
    gradientNorm: 1.5,
    gradientMomentumCosine: 0.25,
    entropy: 0.75,
    kl: 0.0625,
    clipFraction: 0.25,
    critic: { loss: 0.5, gradientNorm: 2, clipFraction: 0.125, explainedVariance: 0.5 },
    logprobGapMax: 0.001953125,
    logprobGapMean: 0.0009765625,
    logprobGapByPosition: [{ from: 0, tokens: 4096, mean: 0.0009765625 }],
    logprobGapByLength: [{ from: 0, tokens: 4096, mean: 0.0009765625 }],
    updates: 2,
    tokens: 4096,
    seconds: 1.5,
  },
  backend: 'tensorflow 2.20.0 cpu',
  spans: [{ part: 'learner', start: 1_767_225_600_000, end: 1_767_225_602_000 }],
};
const { spans: _, ...reported } = result;
const scoreRequest: ScoreRequest = {
  run: 'my-run',
  stage: 'rl',
  step: 2,
  groups: [blob('runs/my-run/rollouts/rl/000002/group-0001.json')],
  reward: {
    components: [{ verifier: 'exact-match', role: 'outcome', weight: 1, gatedBy: null }],
    truncated: 'train',
  },
  scores: ['values', 'reference', 'policy'],
  from: { temperature: 1, topK: 0 },
  policy: checkpointRef('my-run', 4),
  reference: checkpointRef('my-run', 3),
};
const scoreResult: ScoreResult = {
  scores: blob('runs/my-run/scores/rl/000002.safetensors'),
  spans: result.spans,
};

/** Paths that keys are made of, and what is drawn from them. */
function randomVectors() {
  const paths: (string | number)[][] = [
    [5, 'learner'],
    [0, '', 'a', 'ab'],
    [2 ** 53 - 1, 'initial-adapter', 'base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight'],
    ['Grüße, 世界 🌍', -3],
  ];
  return {
    // Salmon et al. 2011: known answers of their own code.
    philox: [
      [[0, 0, 0, 0], { k0: 0, k1: 0 }],
      [[1, 2, 3, 4], { k0: 5, k1: 6 }],
    ].map(([counter, key]) => ({
      counter,
      key,
      words: philox4x32(counter as [number, number, number, number], key as { k0: number; k1: number }),
    })),
    streams: paths.map((path) => {
      const key = randomKey(...path);
      return {
        path,
        key: [key.k0, key.k1],
        uniform: [0, 1, 2, 3].map((counter) => uniform(key, counter)),
        late: uniform(key, 2 ** 40 + 7),
        normal: [0, 1, 2, 3].map((counter) => normal(key, counter)),
      };
    }),
    adapter: {
      seed: 11,
      lora,
      weights: weightShapes(model),
      drawn: Object.fromEntries(
        [...initialAdapter(model, lora, 11)].map(([name, { data }]) => [name, [...data]]),
      ),
    },
  };
}

const common = { run: 'golden', stage: 'rl', backend: 'golden', createdBy: 'gradus 0.1.0' };
const TOKENIZER = JSON.stringify({
  version: '1.0',
  model: { vocab: { a: 0, b: 1, c: 3 } },
  added_tokens: [{ id: 4 }],
});

/** A checkpoint of all weights with a critic beside them, one of an adapter of it, and one whose weights lie in shards. */
async function checkpoints(store: ObjectStore): Promise<[string, Uint8Array][]> {
  const moments = (shapes: [string, number[]][], label: string) => ({
    firstMoments: numbers(shapes, `${label} first`),
    secondMoments: numbers(shapes, `${label} second`),
  });
  const shapes = weightShapes(model);
  const whole: CheckpointContent = {
    ...common,
    step: 1,
    state: {
      config: model,
      weights: numbers(shapes, 'weights'),
      ...moments(shapes, 'policy'),
      updates: 3,
      critic: {
        weights: numbers(criticShapes(model), 'critic'),
        ...moments(criticShapes(model), 'critic'),
        updates: 2,
      },
    },
    files: newModelFiles(model, TOKENIZER, { bos: 1, eos: [3], pad: 0 }),
  };
  const base = await saveCheckpoint(store, whole);
  const matrices = adapterShapes(model, lora);
  const { critic: __, ...policy } = whole.state;
  await saveCheckpoint(store, {
    ...whole,
    step: 2,
    parent: base,
    base,
    state: {
      ...policy,
      adapter: { lora, weights: numbers(matrices, 'adapter') },
      ...moments(matrices, 'adapter'),
    },
  });
  await saveCheckpoint(store, { ...whole, step: 3, parent: base, state: policy, maxShardBytes: 200 });
  const found = await store.list('runs/golden/checkpoints/');
  return Promise.all(
    found.map(async ({ key }): Promise<[string, Uint8Array]> => [
      key.replace('runs/golden/checkpoints/', 'checkpoints/'),
      await store.get((await store.head(key))!),
    ]),
  );
}

/** Every golden file, by its name in `test/golden/learner/`. */
export async function goldenFiles(store: ObjectStore): Promise<Map<string, Uint8Array>> {
  const json: Record<string, unknown> = {
    'activities.json': {
      queue: QUEUES.learner,
      trainStep: ['TrainRequest', 'TrainResult'],
      scoreTokens: ['ScoreRequest', 'ScoreResult'],
      heartbeat: { everySeconds: 1, timeout: HEARTBEAT },
      retry: RETRY,
      atATime: 1,
    },
    'train-request.json': request,
    'train-request-everything.json': withEverything,
    'train-request-distillation.json': distillation,
    'train-result.json': result,
    'step-record.json': { stage: request.stage, step: request.step, ...orderOfRecord(reported) },
    'score-request.json': scoreRequest,
    'score-result.json': scoreResult,
    'random.json': randomVectors(),
  };
  const bytes = Object.entries(json).map(([name, value]): [string, Uint8Array] => [
    name,
    new TextEncoder().encode(`${JSON.stringify(value, null, 2)}\n`),
  ]);
  return new Map([...bytes, ...(await checkpoints(store))]);
}

const orderOfRecord = ({ metrics, checkpoint, backend }: Omit<TrainResult, 'spans'>) => ({
  metrics,
  checkpoint,
  backend,
});
