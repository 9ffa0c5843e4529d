import { expect, it } from 'vitest';
import { trainingSamples } from '../../../../core/algorithms/training-sample.ts';
import { scoreEpisodes } from '../../../../activities/training/scores.ts';
import { packBatch } from '../../../../activities/training/training-batch.ts';
import { METHOD_KINDS } from '../../../../core/algorithms/index.ts';
import type { Episode, RolloutGroup } from '../../../../core/episode/episode.ts';
import type { TrainState } from '../../../../engine/learner/contract.ts';
import { algorithmWith } from '../../../support/algorithm.ts';
import { learnerOfFile } from './learner-of-file.ts';
import { freshState, lively, randomBatch, settings, TINY } from '../../../support/engine/tiny.ts';

// A step of each method from episodes to weights, where the parts must fit: what sampling has cut, scores, streams, losses.

const learner = await learnerOfFile();

const SAMPLING = { temperature: 1, topK: 4, topP: 1, maxTurns: 8, maxCompletionTokens: 160 };
const REWARD = {
  components: [{ verifier: 'v', role: 'outcome' as const, weight: 1, gatedBy: null }],
  truncated: 'train' as const,
};
const turn = { text: '', action: { kind: 'answer' as const, answer: '' } };

/** Two tasks, each sampled four times among few ids. */
const groups = [1, 2].map((index): RolloutGroup => ({
  id: `group-${index}`,
  weights: '',
  temperature: 1,
  tasks: [
    {
      ref: { environment: 'e', split: 'train', level: 1, index },
      prompt: '',
      promptTokens: [1, 2, 3].slice(0, 1 + index),
    },
  ],
  episodes: [1, 0, 1, 0].map((reward, sample): Episode => {
    const tokens = [4 + sample, 5, 6, 7];
    return {
      task: 0,
      sample,
      tokens,
      mask: [1, 1, 0, 1],
      samplerLogprobs: [-1, -1, 0, -1],
      kept: tokens.map((token, i) => (i === 2 ? [] : [1, 2, token])),
      turns: [
        { start: 0, end: 2, ...turn },
        { start: 3, end: 4, ...turn },
      ],
      status: { kind: 'answered', answer: '' },
      outcome: {
        kind: 'scored',
        reward,
        components: [{ verifier: 'v', version: '1', score: reward, contribution: reward }],
      },
    };
  }),
}));

const CRITIC = { clip: 0.2, optimizer: settings(null).optimizer };
const moved = ({ weights }: Pick<TrainState, 'weights'>): boolean => {
  const before = freshState().weights;
  const all = [...weights].flatMap(([name, { data }]) =>
    Array.from(data, (value, i) => value - before.get(name)!.data[i]!),
  );
  expect(all.every(Number.isFinite)).toBe(true);
  return all.some((change) => change !== 0);
};

const written = (kind: string) => (kind === 'opd' ? { kind, teachers: [{ from: 'teacher' }] } : { kind });
type Written = Parameters<typeof algorithmWith>[0];

/** A step from episodes to weights; `policy` is what the step starts from, and the groups were sampled by ''. */
async function stepOf(
  method: Written,
  { policy = '', epochs = 1, learningRate }: { policy?: string; epochs?: number; learningRate?: number } = {},
) {
  const { algorithm, plan } = algorithmWith(method, SAMPLING);
  const reference = lively(TINY, 9);
  const scores =
    plan.scores.length === 0
      ? undefined
      : await scoreEpisodes(
          learner,
          { state: freshState(), reference },
          groups,
          { reward: REWARD, scores: plan.scores, from: SAMPLING },
          new AbortController().signal,
        );
  const { sequences } = trainingSamples(
    groups,
    { algorithm, plan, reward: REWARD, policy },
    {
      ...(scores && { scores }),
      ...(plan.greedy && { greedy: groups.map((one) => ({ ...one, episodes: one.episodes.slice(1, 2) })) }),
    },
  );
  const { optimizer } = settings(null);
  const taught = await learner.step(
    freshState(),
    packBatch(sequences, { minibatch: 16, epochs, seed: 1 }),
    settings(plan.objective, {
      ...(plan.critic && { critic: CRITIC }),
      optimizer: { ...optimizer, ...(learningRate !== undefined && { learningRate }) },
    }),
    {
      reference,
      teachers: plan.teachers.map(() => ({ config: TINY, weights: lively(TINY, 5) })),
    },
  );
  return { plan, ...taught };
}

it.each(METHOD_KINDS.map((kind) => [kind] as const))(
  '%s learns from what was sampled among the likeliest ids',
  async (kind) => {
    const { plan, state, metrics } = await stepOf(written(kind) as Written);
    expect(moved(state)).toBe(true);
    expect(state.critic !== undefined).toBe(plan.critic !== null);
    const { objective } = plan;
    const divergent = objective.kind === 'distill' || (objective.kind === 'clipped' && objective.beta > 0);
    const clips = ['clipped', 'gspo', 'cispo'].includes(objective.kind);
    expect([metrics.kl !== null, metrics.clipFraction !== null]).toEqual([divergent, clips]);
  },
);

it('the KL to the reference is a figure where the loss has one', async () => {
  const { plan } = algorithmWith({ kind: 'grpo', beta: 0.1 });
  const { metrics } = await learner.step(freshState(), randomBatch(4), settings(plan.objective), {
    reference: lively(TINY, 9),
  });
  expect(metrics.kl).toBeGreaterThan(0);
});

const STALE: Written[] = [
  { kind: 'vtrace' },
  { kind: 'vtrace', target: 'retrace' },
  { kind: 'grpo', importanceCap: 2 },
  { kind: 'rloo', importanceCap: 8, importanceRule: 'mask' },
  { kind: 'reinforce++', importanceCap: 2 },
];

it.each(STALE.map((method) => [JSON.stringify(method), method] as const))(
  '%s keeps what another policy has sampled near the policy that the step starts from',
  async (_, method) => {
    const { policy } = await scoreEpisodes(
      learner,
      { state: freshState(), reference: undefined },
      groups,
      { reward: REWARD, scores: ['policy'], from: SAMPLING },
      new AbortController().signal,
    );
    // All were sampled at −1: a clip of the ratio to that policy would bind, on either side.
    expect(Math.min(...policy!)).toBeLessThan(Math.log(0.8) - 1);
    expect(Math.max(...policy!.filter((value) => value !== 0))).toBeGreaterThan(Math.log(1.28) - 1);
    for (const epochs of [1, 2]) {
      const { state, metrics } = await stepOf(method, { policy: 'later', epochs, learningRate: 1e-6 });
      expect(moved(state)).toBe(true);
      expect(metrics.clipFraction).toBe(0);
      // The log-probs are apart because the policies are: nothing speaks against the engine.
      expect(metrics.logprobGapMax).toBeNull();
    }
  },
);

it.each(['grpo', 'ppo', 'remax'] as const)(
  '%s drops tokens whose importance is out of bounds, in a step of one update as in others',
  async (kind) => {
    const { plan } = algorithmWith({ kind, importanceCap: 2, importanceRule: 'mask' });
    const { state } = await learner.step(freshState(), randomBatch(4), settings(plan.objective));
    expect(moved(state)).toBe(true);
  },
);
