import { setImmediate } from 'node:timers/promises';
import type { Objective } from '../core/algorithms/objective.ts';
import { parameterCount } from '../core/model/config.ts';
import type { ModelConfig } from '../core/model/config.ts';
import { RandomStream } from '../core/random.ts';
import { MODEL_DEFAULTS } from '../core/schema/model.ts';
import {
  packing,
  packRows,
  positionsFor,
  positionsIn,
  rowLength,
} from '../engine/learner/batch/row-packing.ts';
import { DEFAULT_COMPUTE } from '../engine/learner/contract.ts';
import type { Learner, TrainBatch, TrainSettings } from '../engine/learner/contract.ts';
import { initialWeights } from '../engine/learner/initial-weights.ts';
import { createLocalLearner } from '../engine/learner/local-learner.ts';
import { loadTensorflowBackend } from '../engine/learner/tensorflow/backend.ts';
import { freshState } from '../test/support/engine/tiny.ts';
import { benchRowsOf, chosenNames, interleavedRuns } from './bench.ts';
import type { Bench } from './bench.ts';
import { MODELS } from './engine/engines.ts';
import { ADAM, GRPO } from './specs.ts';

/** 918,656 parameters. */
const CONFIG: ModelConfig = {
  ...MODEL_DEFAULTS,
  maxPositions: 96,
  rmsNormEpsilon: 1e-5,
  ropeTheta: 10_000,
  tieEmbeddings: false,
};
const OBJECTIVES: Objective[] = [{ kind: 'supervised' }, GRPO];

/** Sequences that are all of 96 tokens, or of 40 to 96. */
function batchOf(sequences: number, ragged: boolean): TrainBatch {
  const random = new RandomStream('bench', 'learner');
  const offsets = new Int32Array(sequences + 1);
  for (let i = 0; i < sequences; i++) offsets[i + 1] = offsets[i]! + (ragged ? random.int(40, 96) : 96);
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
function packedShare({ tokens, offsets }: TrainBatch): number {
  const sequences = Array.from({ length: offsets.length - 1 }, (_, i) => i);
  const longest = rowLength(offsets, sequences);
  const batches = packRows(tokens, offsets, sequences, longest, positionsFor(CONFIG.vocabSize));
  const positions = batches.reduce((sum, { rows, length }) => sum + rows * length, 0);
  return (tokens.length - sequences.length) / positions;
}

/** Steps one after another, from a learner's own last state: tokens per second of each. */
function stepping(
  learner: Learner,
  config: ModelConfig,
  batch: TrainBatch,
  settings: Pick<TrainSettings, 'objective' | 'compute'>,
) {
  let state = freshState(config, initialWeights(config, 1));
  return async (): Promise<number> => {
    const started = performance.now();
    ({ state } = await learner.step(state, batch, { optimizer: ADAM, ...settings }));
    const seconds = (performance.now() - started) / 1000;
    // Kernels are synchronous: this is where a Ctrl-C is heard.
    await setImmediate();
    return batch.tokens.length / seconds;
  };
}

/** Tokens per second of a training step, the state read back included: one traced graph against op by op. */
export const learnerBench: Bench = async function* (options) {
  const runs = options.runs ?? (options.quick ? 2 : 7);
  const sequences = options.quick ? 8 : 64;
  const traced = await createLocalLearner({ mode: 'traced' });
  const eager = await createLocalLearner({ mode: 'eager' });
  options.say(`learner: ${traced.backend}`);
  try {
    for (const objective of OBJECTIVES) {
      for (const ragged of [false, true]) {
        const batch = batchOf(sequences, ragged);
        const steps = (learner: Learner) => stepping(learner, CONFIG, batch, { objective });
        // The first run traces.
        const { ours, anchor } = await interleavedRuns(
          objective.kind,
          { ours: steps(traced), anchor: steps(eager) },
          (speed) => `${Math.round(speed)} tokens/s`,
          { ...options, runs },
        );
        const shape = `${sequences} × ${ragged ? '40–96' : '96'}`;
        const share = Math.round(100 * packedShare(batch));
        const name = `${objective.kind}, ${parameterCount(CONFIG)} parameters, ${shape} tokens (${share} % not padding), traced vs eager`;
        yield benchRowsOf('learner')(name, 'tokens/s', 'more', ours, anchor);
      }
    }
  } finally {
    await traced.close();
    await eager.close();
  }
};

/** Groups of eight samples, each the prompt of its group and a completion of its own, which alone counts. */
function groupsOf(groups: number, prompt: number, completion: number): TrainBatch {
  const random = new RandomStream('bench', 'prompts');
  const length = prompt + completion;
  const draw = (count: number) => Array.from({ length: count }, () => random.int(0, 511));
  const tokens = Array.from({ length: groups }, () => {
    const shared = draw(prompt);
    return Array.from({ length: 8 }, () => [...shared, ...draw(completion)]);
  }).flat(2);
  const sequences = 8 * groups;
  return {
    tokens: Int32Array.from(tokens),
    offsets: Int32Array.from({ length: sequences + 1 }, (_, i) => i * length),
    mask: Float32Array.from(tokens, (_, i) => Number(i % length >= prompt)),
    streams: {
      advantages: Float32Array.from(tokens, () => random.uniform() - 0.5),
      samplerLogprobs: new Float32Array(tokens.length).fill(-6.2),
    },
    sequences: {},
    updates: [Int32Array.from({ length: sequences }, (_, i) => i)],
  };
}

const PROMPTS = {
  '1M': { config: CONFIG, groups: 8, prompt: 128, completion: 128 },
  '30M': { config: MODELS['30M'], groups: 2, prompt: 128, completion: 128 },
  short: { config: CONFIG, groups: 8, prompt: 20, completion: 60 },
};

/** Tokens per second of a training step that shares prompts, against one that does not. */
export const sharedPromptsBench: Bench = async function* (options) {
  const runs = options.runs ?? (options.quick ? 2 : 7);
  const learner = await createLocalLearner({ mode: 'traced' });
  const backend = await loadTensorflowBackend();
  try {
    for (const name of chosenNames(Object.keys(PROMPTS), options)) {
      const { config: shape, groups, prompt, completion } = PROMPTS[name as keyof typeof PROMPTS];
      const config = { ...shape, maxPositions: prompt + completion };
      const batch = groupsOf(options.quick ? 2 : groups, prompt, completion);
      const all = [...batch.updates[0]!];
      const positions = (sharePrompts: boolean) =>
        positionsIn(packing(backend, config, { microBatchTokens: 0, sharePrompts }, batch, all)(all));
      const steps = (sharePrompts: boolean) =>
        stepping(learner, config, batch, { objective: GRPO, compute: { ...DEFAULT_COMPUTE, sharePrompts } });
      const { ours, anchor } = await interleavedRuns(
        name,
        { ours: steps(true), anchor: steps(false) },
        (speed) => `${Math.round(speed)} tokens/s`,
        { ...options, runs },
      );
      const what = `${parameterCount(config)} parameters, ${all.length} × ${prompt} + ${completion} tokens, groups of 8 (${positions(true)} positions for ${positions(false)}), shared prompts vs none`;
      yield benchRowsOf('shared-prompts')(what, 'tokens/s', 'more', ours, anchor);
    }
  } finally {
    await learner.close();
  }
};
