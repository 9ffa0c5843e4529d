import type { DistillObjective, Objective } from '../../../core/algorithms/objective.ts';
import { RandomStream } from '../../../core/random.ts';
import type { TrainRequest } from '../../../core/requests/learner.ts';
import type { TrainBatch } from '../../../engine/learner/contract.ts';
import type { ModelConfig } from '../../../core/model/config.ts';
import { updatesOf } from '../../../activities/training/updates.ts';

/** What two learners are to make the same of: a request's own fields, and how its batch is cut and kept. */
export interface LearnerCase {
  name: string;
  objective: Objective | null;
  more?: Partial<Pick<TrainRequest, 'critic' | 'lora' | 'compute'>>;
  /** Sequences per update and passes over the batch; default one update of all. */
  updates?: { minibatch: number; epochs: number };
  /** Each sampled token was one of so many. */
  kept?: number;
  reference?: true;
  /** How many teachers there are. */
  teachers?: number;
  /** Some of its sequences are branches of one episode. */
  branches?: true;
  /** Several weights have sampled some of its sequences. */
  mixed?: true;
  model?: ModelConfig;
}

/** Its rows 60 to 63 are of no token, where the tokenizer says so. */
export const CASE_MODEL: ModelConfig = {
  vocabSize: 64,
  hiddenSize: 32,
  intermediateSize: 48,
  layers: 2,
  attentionHeads: 4,
  keyValueHeads: 2,
  headSize: 8,
  maxPositions: 64,
  rmsNormEpsilon: 1e-5,
  ropeTheta: 10_000,
  tieEmbeddings: true,
};

const of = { temperature: 0.9, topK: 0 };
const mean = { aggregation: 'token', maxCompletionTokens: 40 } as const;
const clipped = {
  ...of,
  ...mean,
  kind: 'clipped',
  clipRatioLow: 0.2,
  clipRatioHigh: 0.28,
  beta: 0,
  importanceCap: 0,
} as const;
const cispo = { ...of, ...mean, kind: 'cispo', clipRatioHigh: 0.2 } as const;
const reinforce = { ...of, ...mean, kind: 'reinforce', importanceCap: 0 } as const;
const gspo = { ...of, kind: 'gspo', clipRatioLow: 0.02, clipRatioHigh: 0.03 } as const;
const dpo = { ...of, kind: 'dpo', variant: 'sigmoid', beta: 0.1, labelSmoothing: 0 } as const;
const kto = { ...of, kind: 'kto', beta: 0.2, desirableWeight: 1, undesirableWeight: 1.5 } as const;
const distill: DistillObjective = {
  ...mean,
  kind: 'distill',
  divergence: { kind: 'reverse-kl' },
  temperature: 0.8,
  teacherWeights: [1],
};
const critic = (clip: number) => ({
  critic: {
    clip,
    optimizer: {
      learningRate: 3e-3,
      warmupUpdates: 0,
      beta1: 0.9,
      beta2: 0.999,
      epsilon: 1e-8,
      maxGradientNorm: 1,
    },
  },
});
/** Narrow, for the probabilities of the cases are all small. */
const difference = { importanceRule: 'difference', differenceLow: 0.005, differenceHigh: 0.005 } as const;
const several = { minibatch: 3, epochs: 2 };
const lora = { rank: 4, alpha: 8, rsLora: false, targetModules: ['q_proj', 'v_proj', 'down_proj'] };

/** Every loss, with every setting that another equation follows from. */
export const LEARNER_CASES: readonly LearnerCase[] = [
  { name: 'supervised', objective: { kind: 'supervised' }, updates: several },
  { name: 'clipped', objective: clipped },
  { name: 'clipped, several updates', objective: clipped, updates: several },
  { name: 'clipped, by sequence', objective: { ...clipped, aggregation: 'sequence' }, updates: several },
  { name: 'clipped, dr-grpo', objective: { ...clipped, aggregation: 'dr-grpo' } },
  {
    name: 'clipped, branches by sequence',
    objective: { ...clipped, aggregation: 'sequence', beta: 0.1 },
    branches: true,
    reference: true,
    updates: several,
  },
  {
    name: 'clipped, branches by dr-grpo',
    objective: { ...clipped, aggregation: 'dr-grpo' },
    branches: true,
  },
  { name: 'clipped, k3 to a reference', objective: { ...clipped, beta: 0.1 }, reference: true },
  {
    name: 'clipped, k2 to a reference',
    objective: { ...clipped, beta: 0.1, klEstimator: 'k2' },
    reference: true,
    updates: several,
  },
  { name: 'clipped, truncated importance', objective: { ...clipped, importanceCap: 2 }, updates: several },
  {
    name: 'clipped, of turns by several weights',
    objective: { ...clipped, importanceCap: 2 },
    mixed: true,
    updates: several,
  },
  {
    name: 'clipped, masked importance',
    objective: { ...clipped, importanceCap: 2, importanceRule: 'mask' },
  },
  {
    name: 'clipped, IcePop',
    objective: { ...clipped, importanceCap: 5, importanceFloor: 0.5, importanceRule: 'mask' },
    updates: several,
  },
  {
    name: 'clipped, importance truncated from both sides',
    objective: { ...clipped, importanceCap: 2, importanceFloor: 0.8 },
  },
  {
    name: 'clipped, DPPO',
    objective: { ...clipped, importanceCap: 2, ...difference },
    updates: several,
  },
  { name: 'clipped, entropy bonus', objective: { ...clipped, entropyBonus: 0.01 } },
  { name: 'clipped among kept ids', objective: { ...clipped, topK: 8 }, kept: 8, updates: several },
  {
    name: 'clipped among kept ids, entropy bonus',
    objective: { ...clipped, topK: 8, entropyBonus: 0.01 },
    kept: 8,
  },
  { name: 'clipped with a critic', objective: clipped, more: critic(0.2), updates: several },
  { name: 'a critic alone', objective: null, more: critic(0), updates: several },
  { name: 'cispo', objective: cispo },
  { name: 'cispo, several updates', objective: { ...cispo, entropyBonus: 0.01 }, updates: several },
  { name: 'reinforce', objective: reinforce, updates: several },
  {
    name: 'reinforce, truncated importance',
    objective: { ...reinforce, importanceCap: 2 },
    updates: several,
  },
  {
    name: 'reinforce, masked importance',
    objective: { ...reinforce, importanceCap: 2, importanceRule: 'mask', entropyBonus: 0.01 },
  },
  {
    name: 'reinforce, DPPO',
    objective: { ...reinforce, importanceCap: 2, ...difference },
    updates: several,
  },
  { name: 'gspo', objective: gspo },
  { name: 'gspo, several updates', objective: gspo, updates: several },
  { name: 'dpo', objective: dpo, reference: true },
  {
    name: 'dpo, smoothed, several updates',
    objective: { ...dpo, labelSmoothing: 0.1 },
    reference: true,
    updates: { minibatch: 4, epochs: 2 },
  },
  { name: 'ipo', objective: { ...dpo, variant: 'ipo' }, reference: true },
  { name: 'kto', objective: kto, reference: true },
  { name: 'kto, several updates', objective: kto, reference: true, updates: { minibatch: 4, epochs: 2 } },
  { name: 'distill, reverse KL', objective: distill, teachers: 1, updates: several },
  {
    name: 'distill, forward KL, by sequence',
    objective: { ...distill, divergence: { kind: 'forward-kl' }, aggregation: 'sequence' },
    teachers: 1,
  },
  {
    name: 'distill, JSD, two teachers',
    objective: { ...distill, divergence: { kind: 'jsd', beta: 0.3 }, teacherWeights: [0.25, 0.75] },
    teachers: 2,
  },
  {
    name: 'distill, reverse KL to each of two teachers',
    objective: { ...distill, divergence: { kind: 'reverse-kl-each' }, teacherWeights: [0.25, 0.75] },
    teachers: 2,
    updates: several,
  },
  { name: 'an adapter', objective: clipped, more: { lora }, updates: several },
  {
    name: 'an adapter with a critic and a reference',
    objective: { ...clipped, beta: 0.1 },
    more: { lora: { ...lora, rsLora: true }, ...critic(0.2) },
    reference: true,
  },
  { name: 'an adapter that is taught', objective: distill, teachers: 1, more: { lora } },
  {
    name: 'checkpointed layers, small micro-batches',
    objective: clipped,
    more: { compute: { precision: 'float32', gradientCheckpointing: true, microBatchTokens: 64 } },
    updates: several,
  },
  {
    name: 'Qwen2',
    objective: clipped,
    model: { ...CASE_MODEL, biases: ['qkv'] },
    updates: several,
  },
  {
    name: 'Qwen3, output matrix of its own',
    objective: clipped,
    model: { ...CASE_MODEL, queryKeyNorm: true, tieEmbeddings: false },
  },
];

/** Twelve sequences with all streams that a case's loss may read, and some that moves nothing. */
export function caseBatch({ objective, updates, kept, teachers, branches, mixed }: LearnerCase): TrainBatch {
  const count = 12;
  const random = new RandomStream(17, 'learner cases');
  const lengths = Array.from({ length: count }, () => random.int(5, 40));
  const total = lengths.reduce((sum, length) => sum + length, 0);
  const offsets = new Int32Array(count + 1);
  lengths.forEach((length, i) => (offsets[i + 1] = offsets[i]! + length));
  const first = new Set(offsets);
  const floats = (draw: () => number) => Float32Array.from({ length: total }, draw);
  const known = 60;
  const tokens = Int32Array.from({ length: total }, () => random.int(0, known - 1));
  const advantages = floats(() => random.uniform() * 2 - 1);
  // Nothing is learnt from the second sequence of a policy's samples.
  advantages.fill(0, offsets[1], offsets[2]);
  const ofSamples = objective === null || !['supervised', 'dpo', 'kto'].includes(objective.kind);
  return {
    tokens,
    offsets,
    mask: Float32Array.from({ length: total }, (_, i) =>
      Number(!first.has(i) && !first.has(i - 1) && random.uniform() > 0.2),
    ),
    streams: {
      advantages,
      samplerLogprobs: floats(() => -4 + random.uniform()),
      ...(objective === null || objective.kind === 'clipped'
        ? { values: floats(() => random.uniform()), returns: floats(() => random.uniform()) }
        : {}),
      ...(mixed && {
        staleness: Float32Array.from({ length: total }, (_, i) => [2, 2, 1, 0, -1][Math.floor(i / 7) % 5]!),
      }),
    },
    sequences: {
      ...(ofSamples && {
        late: Float32Array.from({ length: count }, (_, i) => Number(i === 3)),
        staleness: Float32Array.from({ length: count }, (_, i) => (i === 3 ? 2 : 0)),
      }),
      ...(objective?.kind === 'dpo' && {
        pair: Float32Array.from({ length: count }, (_, i) => Math.floor(i / 2)),
        label: Float32Array.from({ length: count }, (_, i) => (i % 2 === 0 ? 1 : -1)),
      }),
      ...(objective?.kind === 'kto' && {
        label: Float32Array.from({ length: count }, (_, i) => [1, -1, 0, 1][i % 4]!),
      }),
      ...(branches && {
        episode: Float32Array.from({ length: count }, (_, i) => [0, -1, 0, 1][i % 4]!),
      }),
      ...(teachers === 2 && {
        teacher: Float32Array.from({ length: count }, (_, i) => [-1, 0, 1][i % 3]!),
      }),
    },
    ...(kept !== undefined && { kept: keptSets(tokens, kept, known, random) }),
    updates:
      objective?.kind === 'dpo' && updates
        ? [0, 1, 2, 0, 1, 2].map((part) => Int32Array.of(0, 1, 2, 3).map((i) => part * 4 + i))
        : updatesOf(count, { minibatch: 64, epochs: 1, seed: 7, ...updates }),
  };
}

/** Every token but each fifth was sampled among so many ids. */
function keptSets(tokens: Int32Array, most: number, known: number, random: RandomStream) {
  const sets = Array.from(tokens, (token, i) => {
    if (i % 5 === 0) return [];
    const ids = new Set([token]);
    while (ids.size < most - (i % 3)) ids.add(random.int(0, known - 1));
    return [...ids].toSorted((a, b) => a - b);
  });
  const offsets = new Int32Array(sets.length + 1);
  sets.forEach((set, i) => (offsets[i + 1] = offsets[i]! + set.length));
  return { ids: Int32Array.from(sets.flat()), offsets };
}
