import { readFileSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import type { z } from 'zod';
import { computeAdvantages } from '../../../../../core/algorithms/index.ts';
import type { algorithmSchema } from '../../../../../core/algorithms/index.ts';
import type { Sample } from '../../../../../core/algorithms/sample.ts';
import type { TrainBatch } from '../../../../../engine/learner/contract.ts';
import { lossOf } from '../../../../../engine/learner/losses/index.ts';
import {
  loadTensorflowBackend,
  type TensorflowBackend,
} from '../../../../../engine/learner/tensorflow/backend.ts';
import { algorithmWith } from '../../../../support/algorithm.ts';
import { ROOT } from '../../../../support/markdown.ts';
import { compare, valueAndSlopes } from './by-logits.ts';
import type { Expected } from './by-logits.ts';
import { taskGroup } from '../../../../support/task-group.ts';

// Samples of another policy than the one that learns: credit and the loss that its plan names make, together, the gradient
// that PyTorch gives for the papers' equations (test/reference/methods), so each ratio is in it once.

interface Written {
  mask: (0 | 1)[];
  turns: { start: number; end: number }[];
  reward: number | null;
  rollout: number[];
  policy: number[];
  values?: number[];
  reference?: number[];
  logits: number[][];
  targets: number[];
}

interface Case {
  name: string;
  first: boolean;
  settings: Record<string, string | number | boolean>;
  groups: { samples: Written[] }[];
  expected: Expected;
}

const file = path.join(ROOT, 'test/reference/methods/stale.json');
const { cases } = JSON.parse(readFileSync(file, 'utf8')) as { cases: Case[] };

let backend: TensorflowBackend;
beforeAll(async () => {
  backend = await loadTensorflowBackend('cpu');
});

/** The section of a spec that says the same as a case. */
function written({ credit, target, importance, ...settings }: Case['settings']) {
  const { clipRatioLow, clipRatioHigh, aggregation, gamma, lambda, rhoBar, cBar } = settings;
  const common = { clipRatioLow, clipRatioHigh, aggregation };
  const { klCoefficient, whiten: whitenAdvantages, importanceCap } = settings;
  const section = target
    ? { kind: 'vtrace', target, gamma, lambda, rhoBar, cBar, klCoefficient, whitenAdvantages, ...common }
    : {
        kind: credit,
        importanceCap,
        importanceRule: importance === 'masked' ? 'mask' : 'truncate',
        ...common,
      };
  return section as z.input<typeof algorithmSchema>;
}

const sampleOf = ({ mask, turns, reward, rollout, policy, values, reference }: Written): Sample => ({
  reward,
  success: reward === null ? null : reward === 1,
  mask,
  tokens: mask.map(() => 0),
  before: [],
  samplerLogprobs: rollout,
  scores: { policy, ...(values && { values }), ...(reference && { reference }) },
  truncated: false,
  turns: turns.map((turn) => ({ ...turn, reward: 0, state: '' })),
});

it.each(cases.map((one) => [one.name, one] as const))('%s', (_, { first, settings, groups, expected }) => {
  const sampling = {
    temperature: 1,
    topK: 0,
    topP: 1,
    maxTurns: 8,
    maxCompletionTokens: Number(settings['maxCompletionTokens']),
  };
  const { algorithm, plan } = algorithmWith(written(settings), sampling);
  const credited = groups.map(({ samples }) => taskGroup(samples.map(sampleOf)));
  const computed = computeAdvantages(algorithm, credited);
  const learnt = computed.map(({ group, sample }) => groups[group]!.samples[sample]!);
  const counted = (name: 'policy' | 'rollout') =>
    Float32Array.from(learnt.flatMap(({ mask, ...of }) => of[name].map((value, t) => mask[t]! * value)));
  const streams = {
    advantages: Float32Array.from(computed.flatMap(({ advantages }) => advantages)),
    samplerLogprobs: counted('rollout'),
  };
  const mask = learnt.flatMap((one) => one.mask);
  const offsets = learnt.reduce((ends, one) => [...ends, ends.at(-1)! + one.mask.length], [0]);
  const batch: TrainBatch = {
    tokens: new Int32Array(mask.length),
    offsets: Int32Array.from(offsets),
    mask: Float32Array.from(mask),
    streams,
    sequences: {},
    updates: [],
  };
  const loss = lossOf(plan.objective);
  if (loss.kind !== 'token') throw new TypeError(`${plan.objective.kind} is no loss of tokens`);
  const read = loss
    .reads(first)
    .map((name) => [name, name === 'old' ? counted('policy') : streams[name as keyof typeof streams]]);
  const weights = loss.weights(batch, [...learnt.keys()]);
  const given = {
    mask,
    logits: learnt.flatMap(({ logits }) => logits),
    targets: learnt.flatMap(({ targets }) => targets),
  };
  expect(learnt.length).toBe(groups.flatMap(({ samples }) => samples).length - 1);
  compare(expected, valueAndSlopes(backend, given, loss, { ...Object.fromEntries(read), weights }));
});
