import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { Tensor1D, Tensor2D } from '@tensorflow/tfjs';
import { beforeAll, expect, it } from 'vitest';
import type { Aggregation, Divergence, Objective } from '../../../../../core/algorithms/objective.ts';
import {
  loadTensorflowBackend,
  type TensorflowBackend,
} from '../../../../../engine/learner/tensorflow/backend.ts';
import type { TrainBatch } from '../../../../../engine/learner/contract.ts';
import { lossOf } from '../../../../../engine/learner/losses/index.ts';
import { linearLoss } from '../../../../../engine/learner/losses/linear.ts';
import type { TokenLoss } from '../../../../../engine/learner/losses/loss.ts';
import { tokenWeights } from '../../../../../engine/learner/losses/token-weights.ts';
import { valueLoss } from '../../../../../engine/learner/losses/value.ts';
import { divergenceFrom, mixtureOf } from '../../../../../engine/learner/model/divergence.ts';
import { ROOT } from '../../../../support/markdown.ts';
import { compare, valueAndSlopes } from './by-logits.ts';
import type { ByLogits, Expected } from './by-logits.ts';

// Losses and gradients by the logits are those that PyTorch gives for the papers' equations (test/reference/methods).

/** As test/reference/methods/README.md describes it. */
interface Case {
  name: string;
  method: string;
  settings: { [name: string]: number & string };
  offsets: number[];
  mask: number[];
  logits: number[][];
  targets: number[];
  advantages?: number[];
  weights?: number[];
  old?: number[];
  rollout?: number[];
  reference?: number[];
  pairs?: [number, number][];
  desirable?: boolean[];
  mismatched?: { policy: number[]; reference: number[] };
  teachers?: { weight: number; logits: number[][] }[];
  predicted?: number[];
  values?: number[];
  returns?: number[];
  expected: Expected & { margins?: number[]; accuracy?: number };
}
const file = path.join(ROOT, 'test/reference/methods/losses.json');
const { cases } = JSON.parse(readFileSync(file, 'utf8')) as { cases: Case[] };
const METHODS = [
  'clipped-surrogate',
  'gspo',
  'cispo',
  'reinforce',
  'supervised',
  'dpo',
  'kto',
  'distillation',
  'value',
];

function objectiveOf({ method, settings }: Case): Objective {
  const { temperature = 1, aggregation = 'token', maxCompletionTokens = 1 } = settings;
  const given = { ...settings, temperature, topK: 0, aggregation, maxCompletionTokens };
  const importance =
    settings['importance'] === undefined || (settings['importance'] as string) === 'none'
      ? { importanceCap: 0 }
      : {
          importanceCap: settings['importanceCap'],
          importanceRule:
            { masked: 'mask', difference: 'difference' }[settings['importance'] as string] ?? 'truncate',
        };
  const objective = {
    'clipped-surrogate': {
      ...given,
      ...importance,
      kind: 'clipped',
      entropyBonus: settings['entropyCoefficient'],
    },
    gspo: { ...given, kind: 'gspo' },
    cispo: { ...given, kind: 'cispo' },
    reinforce: { ...given, ...importance, kind: 'reinforce' },
    supervised: { kind: 'supervised' },
    dpo: { ...given, kind: 'dpo' },
    kto: {
      ...given,
      kind: 'kto',
      desirableWeight: settings['lambdaD'],
      undesirableWeight: settings['lambdaU'],
    },
  }[method];
  return objective as unknown as Objective;
}

/** What z₀ is estimated from: sequences of one token, here with its log-prob under policy and reference. */
function mismatchedOf({ settings, mismatched }: Case) {
  if (settings['z0'] !== undefined) return [{ policy: settings['z0'] - 2, reference: -2 }];
  return (mismatched?.policy ?? []).map((policy, i) => ({ policy, reference: mismatched!.reference[i]! }));
}

function batchOf(given: Case): TrainBatch {
  const sequences = given.offsets.length - 1;
  const total = given.mask.length;
  const extra = mismatchedOf(given);
  const stream = (values: readonly number[] | undefined, others = extra.map(() => 0)) =>
    values && Float32Array.from([...values, ...others]);
  const label = Array.from({ length: sequences }, (_, i) => {
    if (given.desirable) return given.desirable[i] ? 1 : -1;
    return given.pairs?.some(([preferred]) => preferred === i) ? 1 : -1;
  });
  const pair = label.map((_, i) => given.pairs?.findIndex((one) => one.includes(i)) ?? -1);
  const streams = {
    advantages: stream(given.advantages ?? given.weights),
    samplerLogprobs: stream(given.rollout),
    reference: stream(
      given.reference,
      extra.map(({ reference }) => reference),
    ),
  };
  return {
    tokens: Int32Array.from([...(given.targets ?? given.mask), ...extra.map(() => 0)]),
    offsets: Int32Array.from([...given.offsets, ...extra.map((_, i) => total + i + 1)]),
    mask: Float32Array.from([...given.mask, ...extra.map(() => 1)]),
    streams: Object.fromEntries(Object.entries(streams).filter(([, values]) => values)),
    sequences: {
      label: Float32Array.from([...label, ...extra.map(() => 0)]),
      pair: Float32Array.from([...pair, ...extra.map(() => -1)]),
    },
    updates: [],
  };
}

let backend: TensorflowBackend;
beforeAll(async () => {
  backend = await loadTensorflowBackend('cpu');
});

function logprobsOf({ logits, targets, mask }: Case, temperature: number): number[] {
  return logits.map((row, i) => {
    const scaled = row.map((logit) => logit / temperature);
    const most = Math.max(...scaled);
    const total = scaled.reduce((sum, logit) => sum + Math.exp(logit - most), 0);
    return mask[i]! * (scaled[targets[i]!]! - most - Math.log(total));
  });
}

it('has cases of every method', () => {
  expect(new Set(cases.map(({ method }) => method))).toEqual(new Set(METHODS));
});

it.each(cases.filter(({ method }) => method === 'value'))('$name', (given) => {
  const { tf } = backend;
  const { expected, settings } = given;
  const batch = batchOf(given);
  const { aggregation, clip } = settings as unknown as { aggregation: Aggregation; clip: number };
  const sequences = [...batch.offsets.keys()].slice(0, -1);
  const weights = tokenWeights(batch, sequences, { aggregation, maxCompletionTokens: 1 });
  const tensor = (values: number[] | Float32Array) => tf.tensor1d(values);
  const fixed = { weights: tensor(weights), returns: tensor(given.returns!), values: tensor(given.values!) };
  let clipped: ArrayLike<number> = [];
  const { value, grad } = tf.valueAndGrad((predicted) => {
    const result = valueLoss(tf, clip, { predicted: predicted as Tensor1D, ...fixed });
    clipped = tf.mul(result.clipped, tensor(given.mask)).dataSync();
    return result.loss;
  })(tensor(given.predicted!));
  compare(expected, { loss: value.dataSync()[0]!, gradient: [...grad.dataSync()], clipped, kl: [] });
});

it.each(cases.filter(({ method }) => method === 'distillation'))('$name', (given) => {
  const { tf } = backend;
  const { expected, settings, teachers = [] } = given;
  const name = settings['divergence'] as unknown as string;
  const objective: Objective = {
    kind: 'distill',
    divergence: (name === 'jsd' ? { kind: name, beta: settings['beta'] } : { kind: name }) as Divergence,
    temperature: settings['temperature']!,
    aggregation: settings['aggregation'] as unknown as Aggregation,
    maxCompletionTokens: 1,
    teacherWeights: teachers.map(({ weight }) => weight),
  };
  const loss = lossOf(objective);
  if (loss.kind !== 'distribution') throw new TypeError('not a loss of distributions');
  const batch = batchOf(given);
  const sequences = [...batch.offsets.keys()].slice(0, -1);
  const weights = tf.tensor1d(loss.weights(batch, sequences));
  const shares = loss.shares(batch);
  const [rows, vocabulary] = [given.logits.length, given.logits[0]!.length];
  const taught = mixtureOf(
    backend,
    teachers.map(({ logits }, i) => ({
      logprobs: tf.logSoftmax(
        tf.div<Tensor2D>(tf.tensor2d(logits, [rows, vocabulary]), objective.temperature),
      ),
      share: tf.tensor1d(shares[i]!),
    })),
  );
  const targets = tf.tensor1d(given.targets, 'int32');
  for (const frozen of [false, true]) {
    const head = tf.eye(vocabulary);
    const { value, grad } = tf.valueAndGrad((logits) => {
      const student = { hidden: tf.div<Tensor2D>(logits, objective.temperature), head, frozen };
      const { divergence } = divergenceFrom(backend, taught, student, targets, objective.divergence);
      return tf.sum(tf.mul(divergence, weights));
    })(tf.tensor2d(given.logits, [rows, vocabulary]));
    compare(expected, { loss: value.dataSync()[0]!, gradient: [...grad.dataSync()], clipped: [], kl: [] });
  }
});

const OTHERS = ['value', 'distillation'];
it.each(cases.filter(({ method }) => !OTHERS.includes(method)))('$name', (given) => {
  const { expected } = given;
  const loss = lossOf(objectiveOf(given));
  const batch = batchOf(given);
  const sequences = [...batch.offsets.keys()].slice(0, -1);
  const cut = (values: Float32Array) => values.slice(0, given.mask.length);
  const single = given.old === undefined;
  const inputs = Object.fromEntries(
    loss
      .reads(single)
      .map((name) => [name, name === 'old' ? Float32Array.from(given.old!) : batch.streams[name]!]),
  );
  let result: ByLogits;
  if (loss.kind === 'token') {
    const weights = (loss satisfies TokenLoss).weights(batch, sequences);
    result = valueAndSlopes(backend, given, loss, { ...inputs, weights });
  } else if (loss.kind === 'coupled') {
    const { temperature } = loss.from;
    const logprobs = Float32Array.from([
      ...logprobsOf(given, temperature),
      ...mismatchedOf(given).map(({ policy }) => policy),
    ]);
    const coupled = loss.compute(batch, sequences, { ...inputs, logprobs });
    const { gradient, kl } = valueAndSlopes(backend, given, linearLoss(loss.from), {
      weights: cut(coupled.slopes),
    });
    result = { loss: coupled.loss, gradient, clipped: coupled.clipped ?? [], kl };
    if (expected.margins) {
      const mean = expected.margins.reduce((sum, one) => sum + one, 0) / expected.margins.length;
      expect(coupled.preference!.margin).toBeCloseTo(mean, 5);
      expect(coupled.preference!.accuracy).toBe(expected.accuracy);
    }
  } else {
    throw new TypeError(`${given.method} is a loss of distributions`);
  }
  compare(expected, result);
});
