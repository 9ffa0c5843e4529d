import { expect, it } from 'vitest';
import { trainingSamples } from '../../../../core/algorithms/training-sample.ts';
import { packBatch } from '../../../../activities/training/training-batch.ts';
import { creditBy } from '../../../support/algorithm.ts';
import type { Episode, RolloutGroup } from '../../../../core/episode/episode.ts';
import { RandomStream } from '../../../../core/random.ts';
import type { ClippedObjective } from '../../../../core/algorithms/objective.ts';
import type { Weights } from '../../../../core/model/config.ts';
import { referenceLogprobs } from './reference-decoder.ts';
import { learnerOfFile } from './learner-of-file.ts';
import { freshState, GRPO, lively, settings, TINY } from '../../../support/engine/tiny.ts';

const learner = await learnerOfFile('eager');

const PROMPT = [1, 2, 3];
const random = new RandomStream('degenerate groups');
const group = (rewards: number[]): RolloutGroup => ({
  id: 'g',
  weights: '',
  temperature: 1,
  tasks: [
    { ref: { environment: 'e', split: 'train', level: 1, index: 0 }, prompt: '', promptTokens: PROMPT },
  ],
  episodes: rewards.map((reward, sample): Episode => {
    const tokens = Array.from({ length: random.int(3, 12) }, () => random.int(0, TINY.vocabSize - 1));
    return {
      task: 0,
      sample,
      tokens,
      mask: tokens.map(() => 1),
      samplerLogprobs: tokens.map(() => -3),
      turns: [],
      status: { kind: 'answered', answer: '' },
      outcome: { kind: 'scored', reward, components: [] },
    };
  }),
});
const REWARDS = [
  [1, 0, 1, 0],
  [1, 1, 1, 1],
  [0, 0, 0, 0],
  [0, 0, 0, 0.5],
];
const groups = REWARDS.map(group);

/** Every episode with its advantage, (r − mean) / deviation, or 0 where all rewards of its group are equal. */
const everything = groups.flatMap(({ episodes }, g) => {
  const rewards = REWARDS[g]!;
  const mean = rewards.reduce((a, b) => a + b) / rewards.length;
  const deviation = Math.sqrt(rewards.reduce((sum, r) => sum + (r - mean) ** 2, 0) / (rewards.length - 1));
  return episodes.map(({ tokens }, i) => ({
    tokens,
    advantage: deviation === 0 ? 0 : (rewards[i]! - mean) / deviation,
  }));
});

type Direction = Map<string, number[]>;

/** The fresh weights moved along a direction, in Float64, which the reference reads as well. */
function moved(along: Direction, by: number): Weights {
  const { weights } = freshState();
  for (const [name, steps] of along) {
    const tensor = weights.get(name)!;
    const data = Float64Array.from(tensor.data, (value, i) => value + by * steps[i]!);
    weights.set(name, { ...tensor, data: data as unknown as Float32Array });
  }
  return weights;
}

const logprobsUnder = (weights: Weights): number[][] =>
  everything.map(({ tokens }) =>
    referenceLogprobs(TINY, weights, [...PROMPT, ...tokens]).slice(PROMPT.length),
  );

/** Losses of all minibatches of the whole batch, added up: GRPO as its papers write it, in double precision. */
function lossOfAll(
  weights: Weights,
  reference: Weights,
  objective: ClippedObjective,
  updates: readonly Int32Array[],
): number {
  const [now, old, ref] = [
    logprobsUnder(weights),
    logprobsUnder(freshState().weights),
    logprobsUnder(reference),
  ];
  const terms = everything.map(({ advantage }, n) =>
    now[n]!.map((logprob, t) => {
      const difference = ref[n]![t]! - logprob;
      return (
        -Math.exp(logprob - old[n]![t]!) * advantage +
        objective.beta * (Math.exp(difference) - difference - 1)
      );
    }),
  );
  const sum = (values: readonly number[]) => values.reduce((a, b) => a + b, 0);
  return sum(
    updates.map((minibatch) => {
      const own = [...minibatch].map((n) => terms[n]!);
      if (objective.aggregation === 'token') return sum(own.flat()) / own.flat().length;
      if (objective.aggregation === 'dr-grpo')
        return sum(own.flat()) / (own.length * objective.maxCompletionTokens);
      return sum(own.map((tokens) => sum(tokens) / tokens.length)) / own.length;
    }),
  );
}

const cases = (['token', 'sequence', 'dr-grpo'] as const).flatMap((aggregation) =>
  [0, 0.05].flatMap((beta) => [16, 5, 4, 2].map((minibatch) => ({ aggregation, beta, minibatch }))),
);

it.each(cases)(
  'what is learnt is what all groups teach, those of equal rewards too: mean over each $aggregation, beta $beta, minibatches of $minibatch',
  async ({ aggregation, beta, minibatch }) => {
    const objective = { ...GRPO, aggregation, beta };
    // Adam that divides by a constant: gradient descent, in steps too small for one update to matter to the next.
    const optimizer = {
      learningRate: 1e2,
      warmupUpdates: 0,
      beta1: 0,
      beta2: 0,
      epsilon: 1e6,
      maxGradientNorm: 0,
    };
    const plan = settings(objective, { optimizer });
    const reference = lively(TINY, 9);
    const { sequences } = trainingSamples(groups, creditBy({ beta }));
    const batch = packBatch(sequences, { minibatch, epochs: 1, seed: 7 });
    const { state, metrics } = await learner.step(freshState(), batch, plan, { reference });
    const before = freshState().weights;
    const gradient: Direction = new Map(
      [...state.weights].map(([name, { data }]) => [
        name,
        Array.from(data, (value, i) => (before.get(name)!.data[i]! - value) / 1e-4),
      ]),
    );
    const squared = [...gradient.values()].flat().reduce((sum, one) => sum + one * one, 0);

    const { updates } = batch;
    const h = 1e-4 / Math.sqrt(squared);
    const slope =
      (lossOfAll(moved(gradient, h), reference, objective, updates) -
        lossOfAll(moved(gradient, -h), reference, objective, updates)) /
      (2 * h);
    expect(metrics.updates).toBe(updates.length);
    expect(slope / squared).toBeCloseTo(1, 2);
  },
);

it('takes the time of what teaches, unless the reference pulls at everything', async () => {
  const lengths = (chosen: typeof everything) =>
    chosen.reduce((sum, { tokens }) => sum + PROMPT.length + tokens.length, 0);
  const step = async (beta: number) => {
    const { sequences } = trainingSamples(groups, creditBy({ beta }));
    const batch = packBatch(sequences, { minibatch: 64, epochs: 1, seed: 7 });
    const others = { reference: lively(TINY, 9) };
    const { metrics } = await learner.step(freshState(), batch, settings({ ...GRPO, beta }), others);
    return metrics.tokens;
  };
  expect(await step(0)).toBe(lengths(everything.filter(({ advantage }) => advantage !== 0)));
  expect(await step(0.05)).toBe(lengths(everything));
});
