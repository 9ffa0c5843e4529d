import { setImmediate } from 'node:timers/promises';
import type { Objective } from '../core/algorithms/objective.ts';
import { MODEL_DEFAULTS } from '../core/schema/model.ts';
import type { Learner, TrainBatch, TrainSettings, TrainState } from '../engine/learner/contract.ts';
import { initialWeights } from '../engine/learner/initial-weights.ts';
import { createLocalLearner } from '../engine/learner/local-learner.ts';
import { packRows, positionsFor, rowLength } from '../engine/learner/batch/row-packing.ts';
import { parameterCount, type ModelConfig } from '../core/model/config.ts';
import { RandomStream } from '../core/random.ts';
import type { BenchOptions } from './bench.ts';
import { benchRow, type BenchRow } from './bench-row.ts';
import { ADAM } from './adam.ts';
import { GRPO } from './grpo-objective.ts';

/** 918,656 parameters. */
const CONFIG: ModelConfig = {
  ...MODEL_DEFAULTS,
  maxPositions: 96,
  rmsNormEpsilon: 1e-5,
  ropeTheta: 10_000,
  tieEmbeddings: false,
};

const OBJECTIVES: Objective[] = [{ kind: 'supervised' }, GRPO];

const RUNS = 7;
const SEQUENCES = 64;
const QUICK_SEQUENCES = 8;

/** Sequences that are all of 96 tokens, or of 40 to 96. */
function batchOf(sequences: number, ragged: boolean): TrainBatch {
  const random = new RandomStream('bench', 'learner');
  const lengths = Array.from({ length: sequences }, () => (ragged ? random.int(40, 96) : 96));
  const offsets = new Int32Array(sequences + 1);
  lengths.forEach((length, i) => (offsets[i + 1] = offsets[i]! + length));
  const total = offsets[sequences]!;
  const starts = new Set(offsets);
  return {
    tokens: Int32Array.from({ length: total }, () => random.int(0, 511)),
    offsets,
    mask: Float32Array.from({ length: total }, (_, i) => (starts.has(i) ? 0 : 1)),
    streams: {
      advantages: Float32Array.from({ length: total }, () => random.uniform()),
      samplerLogprobs: new Float32Array(total).fill(-6.2),
    },
    sequences: {},
    updates: [Int32Array.from({ length: sequences }, (_, i) => i)],
  };
}

/** The part of the computed positions that holds a token: what packing leaves of padding. */
export function packedShare(batch: TrainBatch): number {
  const sequences = Array.from({ length: batch.offsets.length - 1 }, (_, i) => i);
  const length = rowLength(batch.offsets, sequences);
  const batches = packRows(batch.tokens, batch.offsets, sequences, length, positionsFor(CONFIG.vocabSize));
  const positions = batches.reduce((sum, { rows, length }) => sum + rows * length, 0);
  return (batch.tokens.length - sequences.length) / positions;
}

/** Tokens per second of a training step, the state read back included: one traced graph against op by op, interleaved. */
export async function* learnerBench(options: BenchOptions): AsyncGenerator<BenchRow> {
  const { quick, say, signal } = options;
  const runs = options.runs ?? (quick ? 2 : RUNS);
  const sequences = quick ? QUICK_SEQUENCES : SEQUENCES;
  const traced = await createLocalLearner({ mode: 'traced' });
  const eager = await createLocalLearner({ mode: 'eager' });
  say(`learner: ${traced.backend}`);
  try {
    for (const objective of OBJECTIVES) {
      for (const ragged of [false, true]) {
        const batch = batchOf(sequences, ragged);
        const settings = { objective, optimizer: ADAM };
        const time = timer(batch, settings);
        const [ours, anchor]: [number[], number[]] = [[], []];
        // The first run traces.
        for (let run = 0; run <= runs; run++) {
          const speeds = [await time(traced), await time(eager)] as const;
          // Kernels are synchronous: this is where a Ctrl-C is heard.
          await setImmediate();
          signal.throwIfAborted();
          if (run === 0) continue;
          ours.push(speeds[0]);
          anchor.push(speeds[1]);
          say(`  ${objective.kind}, run ${run} of ${runs}: ${speeds.map(Math.round).join(' vs ')} tokens/s`);
        }
        const share = Math.round(100 * packedShare(batch));
        const shape = `${sequences} × ${ragged ? '40–96' : '96'}`;
        yield benchRow({
          bench: 'learner',
          case: `${objective.kind}, ${parameterCount(CONFIG)} parameters, ${shape} tokens (${share} % not padding), traced vs eager`,
          unit: 'tokens/s',
          better: 'more',
          ours,
          anchor,
        });
      }
    }
  } finally {
    await traced.close();
    await eager.close();
  }
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
