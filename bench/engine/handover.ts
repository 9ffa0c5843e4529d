import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createTraining } from '../../activities/training/learner.ts';
import { PolicyPool } from '../../activities/rollout/policy-pool.ts';
import { putBatch } from '../../store/training/batches.ts';
import { saveCheckpoint } from '../../store/training/checkpoints.ts';
import { ObjectStore } from '../../store/objects/object-store.ts';
import { packBatch } from '../../activities/training/training-batch.ts';
import type { CheckpointRef } from '../../core/refs.ts';
import type { TrainRequest } from '../../core/requests.ts';
import { createDecoder } from '../../engine/decoder/decoder.ts';
import { createLearner } from '../../engine/learner/process/remote-learner.ts';
import { newModelFiles } from '../../engine/new-model-files.ts';
import { startObjectStore } from '../../infra/dev/object-store.ts';
import type { BenchOptions } from '../bench.ts';
import { benchRow, median } from '../bench-row.ts';
import type { BenchRow } from '../bench-row.ts';
import { GRPO } from '../grpo-objective.ts';
import { calculatorScripts, calculatorTokenizer, scriptLength } from './calculator-scripts.ts';
import type { Script } from './calculator-scripts.ts';
import { rollOut, turn } from './scripted-rollout.ts';
import { THREADS } from './engines.ts';
import { MODELS, randomWeights } from './models.ts';
import type { ModelSize } from './models.ts';

const RUNS = 5;
/** The part of a step that the goal allows. */
const GOAL = 0.05;
/** The demo's: 64 tasks with 8 samples each, of which about half teach something once the policy is half good. */
const [TASKS, SAMPLES, TAUGHT] = [64, 8, 32];
/** The first step traces its graphs, and until the third one decoder of the pool has never had weights. */
const WARM_UP = 2;

const TRAINING: Pick<TrainRequest, 'objective' | 'optimizer'> = {
  objective: GRPO,
  optimizer: {
    learningRate: 3e-4,
    warmupUpdates: 0,
    beta1: 0.9,
    beta2: 0.98,
    epsilon: 1e-8,
    maxGradientNorm: 1,
  },
};

/** Seconds of the parts of a step, which follow each other. */
interface Seconds {
  rollout: number;
  updates: number;
  /** The new state on its way out of the learner's process. */
  returned: number;
  /** The checkpoint on its way into the store, its manifest last. */
  written: number;
  /** From the store, or the cache of blobs, into a decoder. */
  loaded: number;
  /** A prompt prefilled and a token drawn. */
  firstToken: number;
}

/**
 * From the learner's last update to the first token of the new version, done by the activities themselves. The whole
 * that it is a part of has no verifiers, no batches and no Temporal: with them the part would only be smaller.
 */
export async function* handoverBench(options: BenchOptions): AsyncGenerator<BenchRow> {
  const sizes: readonly ModelSize[] = options.quick ? ['1M'] : ['1M', '30M'];
  for (const size of sizes) yield await handoverRow(size, options);
}

async function handoverRow(size: ModelSize, options: BenchOptions): Promise<BenchRow> {
  const { quick, say, signal } = options;
  const runs = options.runs ?? (quick ? 1 : RUNS);
  const scripts = await calculatorScripts(TASKS, signal);
  const steps: Seconds[] = [];
  await withRun(size, scripts, async (step) => {
    for (let number = 1; number <= WARM_UP + runs; number++) {
      signal.throwIfAborted();
      const seconds = await step(number);
      if (number > WARM_UP) steps.push(seconds);
      const parts = Object.entries(seconds).map(([name, value]) => `${name} ${(value as number).toFixed(3)}`);
      say(`  ${size}, step ${number} of ${WARM_UP + runs}: ${parts.join(', ')}`);
    }
  });
  const wholes = steps.map((step) => step.rollout + step.updates + handover(step));
  say(`  ${size}: ${((100 * median(steps.map(handover))) / median(wholes)).toFixed(1)} % of a step`);
  const length = Math.round(scripts.reduce((sum, script) => sum + scriptLength(script), 0) / TASKS);
  return benchRow({
    bench: 'engine:handover',
    case: `${size} parameters, last update to first token, vs ${100 * GOAL} % of a step of ${TASKS} × ${SAMPLES} episodes of ${length} tokens`,
    unit: 's',
    better: 'less',
    ours: steps.map(handover),
    anchor: wholes.map((seconds) => GOAL * seconds),
  });
}

const handover = ({ returned, written, loaded, firstToken }: Seconds): number =>
  returned + written + loaded + firstToken;

/** Gives `use` a run that takes one step after another. */
async function withRun(
  size: ModelSize,
  scripts: readonly Script[],
  use: (step: (number: number) => Promise<Seconds>) => Promise<void>,
): Promise<void> {
  const folder = await mkdtemp(path.join(tmpdir(), 'gradus-bench-'));
  const server = await startObjectStore({
    dataDir: path.join(folder, 'store'),
    logFile: path.join(folder, 'log'),
  });
  const { endPoint, port, useSSL, accessKey, secretKey } = server;
  const cacheDir = path.join(folder, 'blobs');
  const address = { endPoint, port, useSSL, accessKey, secretKey, bucket: 'gradus', cacheDir };
  // As two workers on a machine have it: a connection each, and the folder of blobs in common.
  const [theirs, ours] = [await ObjectStore.connect(address), await ObjectStore.connect(address)];
  const learner = await createLearner();
  const policies = new PolicyPool(ours, () => createDecoder({ threads: THREADS }));
  const { signal } = new AbortController();
  const last = { updates: 0, wanted: 0, returned: 0 };
  const watched: typeof learner = {
    ...learner,
    step: async (...args) => {
      const begun = performance.now();
      const result = await learner.step(...args);
      last.updates = result.metrics.seconds;
      last.returned = performance.now();
      last.wanted = begun;
      return result;
    },
  };
  const training = createTraining({ store: theirs, learner: watched });
  try {
    let checkpoint = await firstCheckpoint(theirs, size);
    let lease = await policies.lease(checkpoint);
    await use(async (number) => {
      const begun = performance.now();
      const sequences = await rollOut(lease.policy, scripts, SAMPLES, number);
      const rolledOut = performance.now();
      lease.release();
      const taught = packBatch(sequences.slice(0, TAUGHT * SAMPLES), {
        minibatch: 256,
        epochs: 1,
        seed: 1,
      });
      const { ref: batch } = await putBatch(theirs, `runs/bench/batches/${number}`, taught);
      ({ checkpoint } = await training.trainStep(
        {
          ...TRAINING,
          run: 'bench',
          stage: 'bench',
          stageStep: number,
          step: number,
          parent: checkpoint,
          batch,
          resetOptimizer: false,
          seed: 1,
          reference: null,
        },
        signal,
      ));
      const written = performance.now();
      lease = await policies.lease(checkpoint);
      const loaded = performance.now();
      await turn(lease.policy, `first/${number}`, scripts[0]!.prefix, [], [], 1);
      const answered = performance.now();
      return {
        rollout: (rolledOut - begun) / 1000,
        updates: last.updates,
        returned: (last.returned - last.wanted) / 1000 - last.updates,
        written: (written - last.returned) / 1000,
        loaded: (loaded - written) / 1000,
        firstToken: (answered - loaded) / 1000,
      };
    });
  } finally {
    await learner.close();
    await policies.close();
    theirs.close();
    ours.close();
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

function firstCheckpoint(store: ObjectStore, size: ModelSize): Promise<CheckpointRef> {
  const config = MODELS[size];
  return saveCheckpoint(store, {
    run: 'bench',
    stage: 'initialize',
    step: 0,
    backend: 'none',
    createdBy: 'bench',
    state: {
      config,
      weights: randomWeights(config),
      firstMoments: new Map(),
      secondMoments: new Map(),
      updates: 0,
    },
    files: newModelFiles(config, calculatorTokenizer()),
  });
}
