import type { Tensor } from '@tensorflow/tfjs';
import { beforeAll, describe, expect, it } from 'vitest';
import { normal, randomKey } from '../../../../../core/random.ts';
import {
  loadTensorflowBackend,
  type TensorflowBackend,
} from '../../../../../engine/learner/tensorflow/backend.ts';
import type { Objective } from '../../../../../core/algorithms/objective.ts';
import { uploadWeights } from '../../../../../engine/learner/step/device-state.ts';
import { lossOf } from '../../../../../engine/learner/losses/index.ts';
import type { TokenLoss } from '../../../../../engine/learner/losses/loss.ts';
import type { TokenInput } from '../../../../../engine/learner/losses/loss.ts';
import { logprobProgram, trainingProgram } from '../../../../../engine/learner/programs/policy-programs.ts';
import { gather, packRows, rowLength, scatter } from '../../../../../engine/learner/batch/row-packing.ts';
import { weightShapes, type ModelConfig, type Weights } from '../../../../../core/model/config.ts';
import { referenceLogprobs } from '../reference-decoder.ts';
import { GRPO, lively, randomBatch, TINY } from '../../../../support/engine/tiny.ts';

let backend: TensorflowBackend;
beforeAll(async () => {
  backend = await loadTensorflowBackend('cpu');
});

const tokenLossOf = (objective: Objective) => lossOf(objective) as TokenLoss;

function modelInputs(
  config: ModelConfig,
  weights: Weights,
  rows: ReturnType<typeof packRows>[number],
): Tensor[] {
  const { tf } = backend;
  return [
    ...uploadWeights(backend, config, weights),
    tf.tensor1d(rows.tokens, 'int32'),
    tf.tensor1d(rows.targets, 'int32'),
    tf.tensor2d(rows.segments, [rows.rows, rows.length], 'int32'),
  ];
}

describe('the forward pass', () => {
  for (const [what, config] of [
    ['an output matrix of its own', TINY],
    ['tied embeddings', { ...TINY, tieEmbeddings: true }],
  ] as const) {
    it(`gives the log-probs of a decoder written with loops, several sequences to a row, with ${what}`, () => {
      const weights = lively(config, 5);
      const batch = randomBatch(7, config);
      const sequences = [0, 1, 2, 3, 4, 5, 6];
      const packed = packRows(
        batch.tokens,
        batch.offsets,
        sequences,
        rowLength(batch.offsets, sequences),
        128,
      );
      const logprobs = new Float32Array(batch.tokens.length);
      for (const rows of packed) {
        const [result] = logprobProgram(backend, { config }, { temperature: 0.7, topK: 0 }).compute(
          modelInputs(config, weights, rows),
        );
        scatter(result!.dataSync() as Float32Array, rows, logprobs);
      }
      const shared = packed.some(({ segments }) => segments.includes(1));
      expect(shared).toBe(true);
      for (const sequence of sequences) {
        const [start, end] = [batch.offsets[sequence]!, batch.offsets[sequence + 1]!];
        const expected = referenceLogprobs(config, weights, Array.from(batch.tokens.slice(start, end)), 0.7);
        expected.forEach((value, i) => expect(logprobs[start + i]).toBeCloseTo(value, 4));
      }
    });
  }
});

it('a micro-batch in parts, one a core, gives the log-probs and the gradient of it whole', () => {
  const { tf } = backend;
  const weights = lively(TINY, 5);
  const batch = randomBatch(8);
  const sequences = [0, 1, 2, 3, 4, 5, 6, 7];
  const [rows] = packRows(batch.tokens, batch.offsets, sequences, 32, 256, 4);
  expect(rows!.rows % 4).toBe(0);
  const perToken = [batch.mask, tokenLossOf(GRPO).weights(batch, sequences), batch.streams.advantages!];
  const inputs = [
    ...modelInputs(TINY, weights, rows!),
    ...perToken.map((values) => tf.tensor1d(gather(values, rows!))),
  ];
  const [whole, parts] = [1, 4].map((threads) =>
    trainingProgram({ ...backend, threads }, { config: TINY }, tokenLossOf(GRPO), true).compute(inputs),
  );
  expect(parts).toHaveLength(whole!.length);
  for (const [i, tensor] of whole!.entries()) {
    const expected = tensor.dataSync() as Float32Array;
    const given = parts![i]!.dataSync() as Float32Array;
    const largest = expected.reduce((max, value) => Math.max(max, Math.abs(value)), 1e-3);
    expect(parts![i]!.shape).toEqual(tensor.shape);
    expect(given.every((value, at) => Math.abs(value - expected[at]!) <= 1e-5 * largest)).toBe(true);
  }
});

describe('gradients agree with finite differences', () => {
  const cases: [string, Objective, boolean][] = [
    ['supervised, with unlikelihood', { kind: 'supervised' }, true],
    ['GRPO, first and only update', { ...GRPO, temperature: 0.8 }, true],
    ['GRPO against an older policy, with clip', GRPO, false],
    ['GRPO with KL', { ...GRPO, beta: 0.3 }, false],
    ['an entropy bonus', { ...GRPO, entropyBonus: 0.7, temperature: 0.8 }, false],
    ['importance weights that mask', { ...GRPO, importanceCap: 1.4, importanceRule: 'mask' }, false],
    ['REINFORCE, mean over sequences', { ...GRPO, kind: 'reinforce', aggregation: 'sequence' }, true],
    [
      'GRPO with importance correction, mean over sequences',
      { ...GRPO, importanceCap: 1.5, aggregation: 'sequence' },
      false,
    ],
  ];
  for (const [what, objective, single] of cases) {
    it(what, () => {
      const { tf } = backend;
      const weights = lively(TINY, 5);
      const batch = randomBatch(4);
      const sequences = [0, 1, 2, 3];
      const [rows] = packRows(batch.tokens, batch.offsets, sequences, 64, 256);
      const key = randomKey('finite differences', what);
      const current = new Float32Array(batch.tokens.length);
      const loss = tokenLossOf(objective);
      const [logprobs] = logprobProgram(backend, { config: TINY }, loss.from).compute(
        modelInputs(TINY, weights, rows!),
      );
      scatter(logprobs!.dataSync() as Float32Array, rows!, current);
      // With one update the old policy is whatever runs; its ratio is 1 by definition, so differences are taken against a fixed old.
      const near = (spread: number, from: number) =>
        current.map((value, i) => value + spread * normal(key, from + i));
      const perToken: Partial<Record<TokenInput, Float32Array>> = {
        advantages: batch.streams.advantages!,
        // Ratios well inside and well outside the clip: at its bounds the loss has no derivative.
        old: single ? current : current.map((value, i) => value + [-0.5, -0.1, 0.1, 0.5][i % 4]!),
        samplerLogprobs: near(0.5, 1000),
        reference: near(0.4, 2000),
      };
      const token = loss.weights(batch, sequences);
      const run = (weights: Weights, single: boolean) => {
        const values = [batch.mask, token, ...loss.reads(single).map((name) => perToken[name]!)];
        const inputs = [
          ...modelInputs(TINY, weights, rows!),
          ...values.map((array) => tf.tensor1d(gather(array, rows!))),
        ];
        const [value, , , , , ...gradients] = trainingProgram(
          backend,
          { config: TINY },
          loss,
          single,
        ).compute(inputs);
        return { loss: value!.dataSync()[0]!, gradients: gradients.map((tensor) => tensor.dataSync()) };
      };
      const { gradients } = run(weights, single);
      weightShapes(TINY).forEach(([name], n) => {
        const direction = weights.get(name)!.data.map((_, i) => normal(key, 10_000 * (n + 1) + i));
        const norm = Math.hypot(...direction);
        const shifted = (by: number) => {
          const tensor = weights.get(name)!;
          const data = tensor.data.map((value, i) => value + (by * direction[i]!) / norm);
          return run(new Map([...weights, [name, { ...tensor, data }]]), false).loss;
        };
        const step = 4e-3;
        const difference = (shifted(step) - shifted(-step)) / (2 * step);
        const derivative = direction.reduce((sum, value, i) => sum + value * gradients[n]![i]!, 0) / norm;
        expect(Math.abs(derivative - difference), name).toBeLessThan(2e-4 + 0.02 * Math.abs(difference));
      });
    });
  }
});
