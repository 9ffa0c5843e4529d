import { pathToFileURL } from 'node:url';
import type { Learner, TrainBatch, TrainSettings, TrainState } from '../engine/learner/contract.ts';
import { initialWeights } from '../engine/learner/initial-weights.ts';
import { createLocalLearner } from '../engine/learner/local-learner.ts';
import { packRows, positionsFor, rowLength } from '../engine/learner/row-packing.ts';
import { parameterCount, type ModelConfig } from '../engine/model-config.ts';
import { RandomStream } from '../core/random.ts';
import { median, type BenchRow } from './bench-row.ts';

/** 918,656 parameters. */
const CONFIG: ModelConfig = {
  vocabSize: 512,
  hiddenSize: 128,
  intermediateSize: 384,
  layers: 4,
  attentionHeads: 4,
  keyValueHeads: 2,
  headSize: 32,
  maxPositions: 96,
  rmsNormEpsilon: 1e-5,
  ropeTheta: 10_000,
  tieEmbeddings: false,
};

const OPTIMIZER = {
  learningRate: 1e-4,
  warmupUpdates: 0,
  beta1: 0.9,
  beta2: 0.999,
  epsilon: 1e-8,
  maxGradientNorm: 1,
};
const OBJECTIVES: TrainSettings['objective'][] = [
  { kind: 'supervised' },
  {
    kind: 'grpo',
    clipRatioLow: 0.2,
    clipRatioHigh: 0.28,
    beta: 0,
    aggregation: 'token',
    temperature: 1,
    importanceCap: 2,
  },
];

/** 64 sequences: all of 96 tokens, or of 40 to 96. */
function batchOf(ragged: boolean): TrainBatch {
  const random = new RandomStream('bench', 'learner');
  const lengths = Array.from({ length: 64 }, () => (ragged ? random.int(40, 96) : 96));
  const offsets = new Int32Array(65);
  lengths.forEach((length, i) => (offsets[i + 1] = offsets[i]! + length));
  const total = offsets[64]!;
  const starts = new Set(offsets);
  return {
    tokens: Int32Array.from({ length: total }, () => random.int(0, 511)),
    offsets,
    mask: Float32Array.from({ length: total }, (_, i) => (starts.has(i) ? 0 : 1)),
    advantages: Float32Array.from({ length: total }, () => random.uniform()),
    rolloutLogprobs: new Float32Array(total).fill(-6.2),
  };
}

/** The part of the computed positions that holds a token: what packing leaves of padding. */
export function packedShare(batch: TrainBatch): number {
  const sequences = Array.from({ length: batch.offsets.length - 1 }, (_, i) => i);
  const length = rowLength(batch.offsets);
  const batches = packRows(batch.tokens, batch.offsets, sequences, length, positionsFor(CONFIG.vocabSize));
  const positions = batches.reduce((sum, { rows, length }) => sum + rows * length, 0);
  return (batch.tokens.length - sequences.length) / positions;
}

/** Tokens per second of a training step, the state read back included: one traced graph against op by op, interleaved. */
export async function learnerBench(runs = 7): Promise<BenchRow[]> {
  const traced = await createLocalLearner({ mode: 'traced' });
  const eager = await createLocalLearner({ mode: 'eager' });
  const rows: BenchRow[] = [];
  try {
    for (const objective of OBJECTIVES) {
      for (const ragged of [false, true]) {
        const batch = batchOf(ragged);
        const settings = { objective, optimizer: OPTIMIZER, minibatch: 64, epochs: 1, seed: 1 };
        const time = timer(batch, settings);
        const [ours, anchor]: [number[], number[]] = [[], []];
        // The first run traces.
        for (let run = -1; run < runs; run++) {
          const speeds = [await time(traced), await time(eager)] as const;
          if (run < 0) continue;
          ours.push(speeds[0]);
          anchor.push(speeds[1]);
        }
        const share = Math.round(100 * packedShare(batch));
        const shape = ragged ? '64 × 40–96' : '64 × 96';
        rows.push({
          bench: 'learner',
          case: `${objective.kind}, ${parameterCount(CONFIG)} parameters, ${shape} tokens (${share} % not padding), traced vs eager`,
          ours: median(ours),
          anchor: median(anchor),
          ratio: median(ours) / median(anchor),
          unit: 'tokens/s',
          runs,
        });
      }
    }
  } finally {
    await traced.close();
    await eager.close();
  }
  return rows;
}

/** Steps one after another, each learner from its own last state. */
function timer(batch: TrainBatch, settings: TrainSettings): (learner: Learner) => Promise<number> {
  const states = new Map<Learner, TrainState>();
  const fresh = (): TrainState => ({
    config: CONFIG,
    weights: initialWeights(CONFIG, 1),
    firstMoments: new Map(),
    secondMoments: new Map(),
    updates: 0,
  });
  return async (learner) => {
    const started = performance.now();
    const { state } = await learner.step(states.get(learner) ?? fresh(), batch, settings);
    states.set(learner, state);
    return batch.tokens.length / ((performance.now() - started) / 1000);
  };
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  console.log(JSON.stringify(await learnerBench(), null, 2));
}
