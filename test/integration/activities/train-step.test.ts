import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { createTraining } from '../../../activities/training/learner.ts';
import type { Objective } from '../../../core/algorithms/objective.ts';
import type { CheckpointRef } from '../../../core/refs.ts';
import type { TrainRequest } from '../../../core/requests/learner.ts';
import type { LoraSpec } from '../../../core/schema/lora.ts';
import { RandomStream } from '../../../core/random.ts';
import type { Learner, TrainBatch, TrainState } from '../../../engine/learner/contract.ts';
import { createLocalLearner } from '../../../engine/learner/local-learner.ts';
import { createLearner } from '../../../engine/learner/process/remote-learner.ts';
import { putBatch } from '../../../store/training/batches.ts';
import {
  adoptCheckpoint,
  CRITIC,
  loadCheckpoint,
  readManifest,
  saveCheckpoint,
} from '../../../store/training/checkpoints.ts';
import { applyRetention } from '../../../store/training/retention.ts';
import { TRAIN_REQUEST } from '../../../store/training/train-request.ts';
import { openTestStore } from '../../support/test-store.ts';
import { checkpointAt, smallConfig } from '../../support/store/fixtures.ts';

// Steps of a real learner between checkpoints of a real store.

const { server, store } = await openTestStore();
const { signal } = new AbortController();
let learner: Learner;
beforeAll(async () => {
  learner = await createLocalLearner({ backend: 'cpu' });
});
afterAll(() => learner?.close());

const optimizer = {
  learningRate: 1e-3,
  warmupUpdates: 0,
  beta1: 0.9,
  beta2: 0.999,
  epsilon: 1e-8,
  maxGradientNorm: 1,
};
const clipped: Objective = {
  kind: 'clipped',
  temperature: 1,
  topK: 0,
  clipRatioLow: 0.2,
  clipRatioHigh: 0.2,
  beta: 0,
  aggregation: 'token',
  maxCompletionTokens: 16,
  importanceCap: 0,
};
const distill: Objective = {
  kind: 'distill',
  divergence: { kind: 'reverse-kl' },
  temperature: 1,
  aggregation: 'token',
  maxCompletionTokens: 16,
  teacherWeights: [1],
};

/** Four sequences of twelve tokens, all but the first of which count, in two updates. */
function someBatch(): TrainBatch {
  const random = new RandomStream('train step');
  const numbers = <T>(make: (at: number) => T): T[] => Array.from({ length: 48 }, (_, i) => make(i));
  return {
    tokens: Int32Array.from(numbers(() => random.int(0, smallConfig.vocabSize - 1))),
    offsets: Int32Array.of(0, 12, 24, 36, 48),
    mask: Float32Array.from(numbers((i) => Number(i % 12 > 0))),
    streams: {
      advantages: Float32Array.from(numbers((i) => (i < 24 ? 1 : -1))),
      samplerLogprobs: Float32Array.from(numbers(() => -4)),
      values: new Float32Array(48),
      returns: Float32Array.from(numbers((i) => i % 3)),
    },
    sequences: {},
    updates: [Int32Array.of(0, 2), Int32Array.of(3, 1)],
  };
}

async function requestOf(
  run: string,
  change: Partial<TrainRequest>,
): Promise<(step: number, parent: CheckpointRef) => TrainRequest> {
  const { ref: batch } = await putBatch(store, `runs/${run}/batch.safetensors`, someBatch());
  return (step, parent) => ({
    run,
    stage: 'rl',
    stageStep: step,
    step,
    parent,
    batch,
    objective: clipped,
    optimizer,
    // The moments that the checkpoint begins with are random, squares below 0 among them.
    resetOptimizer: step === 1,
    seed: 1,
    reference: null,
    ...change,
  });
}
const beginning = (run: string) => saveCheckpoint(store, checkpointAt(0, smallConfig, run));

test('steps with a critic go on from the store as from memory, to the bit', async () => {
  const critic = { clip: 0.2, optimizer: { ...optimizer, learningRate: 5e-3 } };
  const [whole, cut] = await Promise.all(
    ['in-memory', 'from-store'].map((run) => requestOf(run, { critic })),
  );
  const training = createTraining({ store, learner });
  let checkpoint = await beginning('in-memory');
  for (const step of [1, 2, 3]) ({ checkpoint } = await training.trainStep(whole!(step, checkpoint), signal));
  let resumed = await beginning('from-store');
  for (const step of [1, 2, 3]) {
    // As after a crash: nothing is known but what lies in the store.
    const anew = createTraining({ store, learner });
    const { checkpoint: next, metrics } = await anew.trainStep(cut!(step, resumed), signal);
    expect(metrics.critic!.loss).toBeGreaterThan(0);
    resumed = next;
  }
  expect(resumed.weights).toBe(checkpoint.weights);
  const [a, b] = [await loadCheckpoint(store, checkpoint), await loadCheckpoint(store, resumed)];
  expect(b.manifest.files[CRITIC]!.sha256).toBe(a.manifest.files[CRITIC]!.sha256);
  expect(b.state.critic!.updates).toBe(6);
});

const COMPUTE = { precision: 'float32', gradientCheckpointing: false, microBatchTokens: 0 } as const;

test('where every third checkpoint has moments, a learner that knows only the store makes the steps between again', async () => {
  const critic = { clip: 0.2, optimizer: { ...optimizer, learningRate: 5e-3 } };
  const lora = { rank: 2, alpha: 4, targetModules: ['q_proj', 'down_proj'], rsLora: false } as LoraSpec;
  const all = await requestOf('moments-all', { critic, lora, compute: COMPUTE });
  const some = { critic, lora, compute: { ...COMPUTE, saveOptimizerEvery: 3 } };
  const [live, lost] = await Promise.all(['moments-live', 'moments-lost'].map((run) => requestOf(run, some)));
  const oneLearner = createTraining({ store, learner });
  const anew = () => createTraining({ store, learner });
  let [expected, kept, resumed] = await Promise.all(
    ['moments-all', 'moments-live', 'moments-lost'].map((run) => beginning(run)),
  );
  for (const step of [1, 2, 3, 4]) {
    ({ checkpoint: expected } = await anew().trainStep(all(step, expected!), signal));
    ({ checkpoint: kept } = await oneLearner.trainStep(live!(step, kept!), signal));
    ({ checkpoint: resumed } = await anew().trainStep(lost!(step, resumed!), signal));
    const [whole, a, b] = await Promise.all(
      [expected, kept, resumed].map((ref) => loadCheckpoint(store, ref)),
    );
    for (const { manifest, state } of [a!, b!]) {
      const has = step === 3;
      expect(manifest.files[TRAIN_REQUEST] === undefined, `step ${step}`).toBe(has);
      expect([state.firstMoments.size > 0, state.critic!.secondMoments.size > 0]).toEqual([has, has]);
      expect(state.adapter!.weights).toEqual(whole!.state.adapter!.weights);
      expect(state.critic!.weights).toEqual(whole!.state.critic!.weights);
      if (has) expect(state).toEqual(whole!.state);
    }
  }
  // The newest cannot be gone on from without the moments of step 3, and the base.
  await applyRetention(store, 'moments-lost', { keepLast: 1, keepBest: 0, keepEvery: 0, pinned: [] });
  const { folders } = await store.listFolder('runs/moments-lost/checkpoints/');
  expect(folders.map((folder) => Number.parseInt(folder.split('/').at(-2)!, 10))).toEqual([0, 3, 4]);
  const more = await anew().trainStep(lost!(5, resumed!), signal);
  const adopted = await adoptCheckpoint(store, more.checkpoint, 'moments-adopted');
  expect(Object.keys((await readManifest(store, adopted.manifest)).files)).not.toContain(TRAIN_REQUEST);
});

test('moments stay with the learner until a checkpoint is due, and are made again where its process ends between', async () => {
  const remote = await createLearner({ backend: 'cpu' });
  onTestFinished(() => remote.close());
  const steps: { withoutMoments: boolean; state: TrainState }[] = [];
  const watched: Learner = {
    ...remote,
    async step(...args) {
      const result = await remote.step(...args);
      steps.push({ withoutMoments: args[2].withoutMoments === true, state: result.state });
      return result;
    },
  };
  const compute = { ...COMPUTE, saveOptimizerEvery: 3 };
  const [all, some] = await Promise.all([
    requestOf('stay-all', { compute: COMPUTE }),
    requestOf('stay', { compute }),
  ]);
  const [reference, training] = [
    createTraining({ store, learner }),
    createTraining({ store, learner: watched }),
  ];
  let [expected, kept] = await Promise.all(['stay-all', 'stay'].map((run) => beginning(run)));
  const made: number[] = [];
  for (const step of [1, 2, 3, 4, 5, 6]) {
    // Between steps 4 and 5 nothing but the learner has the moments of step 4.
    if (step === 5) {
      const killed = remote.pid!;
      process.kill(killed, 'SIGKILL');
      await expect.poll(() => remote.pid).not.toBe(killed);
    }
    const before = steps.length;
    ({ checkpoint: expected } = await reference.trainStep(all(step, expected!), signal));
    ({ checkpoint: kept } = await training.trainStep(some(step, kept!), signal));
    expect(kept.weights, `step ${step}`).toBe(expected.weights);
    made.push(steps.length - before);
  }
  expect(made).toEqual([1, 1, 1, 1, 2, 1]);
  expect(steps.map(({ withoutMoments }) => withoutMoments)).toEqual([
    true,
    true,
    false,
    true,
    // Step 4 once more, and then step 5.
    false,
    true,
    false,
  ]);
  for (const { withoutMoments, state } of steps) expect(state.firstMoments.size === 0).toBe(withoutMoments);
  const [whole, last] = [await loadCheckpoint(store, expected!), await loadCheckpoint(store, kept!)];
  expect(last.state).toEqual(whole.state);
  expect(last.manifest.files['optimizer.safetensors'].sha256).toBe(
    whole.manifest.files['optimizer.safetensors'].sha256,
  );
});

test('a step that could not be stored is stored by the next attempt, and not computed again', async () => {
  const compute = { ...COMPUTE, saveOptimizerEvery: 3 };
  const request = await requestOf('unsaved', { compute });
  let computed = 0;
  const counted: Learner = {
    ...learner,
    async step(...args) {
      const result = await learner.step(...args);
      computed++;
      if (computed === 2) await server.kill();
      return result;
    },
  };
  const training = createTraining({ store, learner: counted });
  const first = await beginning('unsaved');
  const { checkpoint: second } = await training.trainStep(request(1, first), signal);
  await expect(training.trainStep(request(2, second), signal)).rejects.toMatchObject({
    boundary: 'store',
    retryable: true,
  });
  await server.restart();
  const { checkpoint: third } = await training.trainStep(request(2, second), signal);
  expect(computed).toBe(2);
  await training.trainStep(request(3, third), signal);
  expect(computed).toBe(3);
});

test('a step of the critic alone leaves the weights of the policy, in a checkpoint of its own', async () => {
  const first = await beginning('alone');
  const request = await requestOf('alone', { objective: null, critic: { clip: 0, optimizer } });
  const { checkpoint } = await createTraining({ store, learner }).trainStep(request(1, first), signal);
  expect(checkpoint.weights).toBe(first.weights);
  expect(checkpoint.manifest.key).not.toBe(first.manifest.key);
  const { state, manifest } = await loadCheckpoint(store, checkpoint);
  expect([manifest.updates, state.critic!.updates]).toEqual([0, 2]);
});

test('a stage without a critic leaves none in its checkpoints', async () => {
  const training = createTraining({ store, learner });
  const first = await beginning('ends');
  const beside = await requestOf('ends', { critic: { clip: 0, optimizer } });
  const { checkpoint } = await training.trainStep(beside(1, first), signal);
  const after = await requestOf('ends', {});
  const { checkpoint: last } = await training.trainStep(after(2, checkpoint), signal);
  const [before, { manifest, state }] = [
    await loadCheckpoint(store, checkpoint),
    await loadCheckpoint(store, last),
  ];
  expect(before.manifest.files[CRITIC]).toBeDefined();
  expect([manifest.files[CRITIC], state.critic]).toEqual([undefined, undefined]);
});

test('a student learns from the checkpoints that are named as its teachers, and nothing from itself', async () => {
  const student = await beginning('student');
  const teacher = await saveCheckpoint(store, checkpointAt(7, smallConfig, 'teacher'));
  const training = createTraining({ store, learner });
  const lossFrom = async (run: string, teachers: CheckpointRef[]) => {
    const request = await requestOf(run, { objective: distill, teachers });
    return (await training.trainStep(request(1, student), signal)).metrics.loss!;
  };
  const ofAnother = await lossFrom('taught', [teacher]);
  expect(ofAnother).toBeGreaterThan(0.1);
  expect(await lossFrom('taught-by-itself', [student])).toBeLessThan(0.01 * ofAnother);
});
