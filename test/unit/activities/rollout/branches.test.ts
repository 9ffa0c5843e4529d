import { describe, expect, test } from 'vitest';
import { branchesOf, firstSampleOf } from '../../../../activities/rollout/branches.ts';
import { trainingSamples } from '../../../../core/algorithms/training-sample.ts';
import { tally } from '../../../../activities/verification/tally.ts';
import type { Episode, RolloutGroup } from '../../../../core/episode/episode.ts';
import { atOnce } from '../../../../engine/in-pieces.ts';
import { creditBy } from '../../../support/algorithm.ts';

const PROMPT = [90, 91];
const { reward } = creditBy({});

/** Turns of two tokens that say the action, and observations of one; the last turn is the answer. */
function episode(sample: number, actions: readonly number[], earned: number | null, over = {}): Episode {
  const tokens = actions.flatMap((action, k) =>
    k + 1 < actions.length ? [action, action, 7] : [action, action],
  );
  return {
    task: 0,
    sample,
    tokens,
    mask: tokens.map((token) => (token === 7 ? 0 : 1)),
    samplerLogprobs: tokens.map((token) => (token === 7 ? 0 : -token / 100)),
    turns: actions.map((action, k) => ({
      start: 3 * k,
      end: 3 * k + 2,
      text: `${action}`,
      action: { kind: 'answer', answer: `${action}` },
    })),
    status: { kind: 'answered', answer: 'x' },
    outcome:
      earned === null
        ? { kind: 'failed', boundary: 'tool', reason: 'away' }
        : { kind: 'scored', reward: earned, components: [] },
    ...over,
  };
}

const group = (episodes: Episode[], over: Partial<RolloutGroup> = {}): RolloutGroup => ({
  id: 'group-0000',
  weights: 'w',
  temperature: 1,
  tasks: [
    {
      ref: { environment: 'library', split: 'train', level: 1, index: 0 },
      prompt: 'p',
      promptTokens: PROMPT,
    },
  ],
  episodes,
  ...over,
});
const search = { width: 2, exploration: 0.5 };
const branch = (trees: RolloutGroup[], samples: number) => atOnce(branchesOf(trees, samples, search, reward));
/** The part of a step that grows the tree of `group([])`. */
const grown = (episodes: Episode[]): RolloutGroup =>
  group(episodes, { id: 'group-0001', grows: 'group-0000' });
const inherits = (sample: number, turns: number) => ({ inherited: { sample, turns, tokens: 3 * turns } });

describe('samples that branch off', () => {
  test('go on from where another one stood, with its tokens as they were sampled', () => {
    const [first, second] = branch([group([episode(0, [1, 2], 1), episode(1, [3, 4], 0)])], 2);
    expect(first).toEqual({
      task: 0,
      sample: 2,
      tokens: [1, 1, 7],
      mask: [1, 1, 0],
      samplerLogprobs: [-0.01, -0.01, 0],
      turns: [expect.objectContaining({ start: 0, end: 2, text: '1' })],
      inherited: { sample: 0, turns: 1, tokens: 3 },
      status: { kind: 'running' },
    });
    // The better beginning again: all that came of it ended.
    expect(second).toMatchObject({ sample: 3, inherited: { sample: 0 } });
  });

  test('are numbered behind those of all rounds, and see what these have brought', () => {
    const roots = group([episode(0, [1, 2], 0), episode(1, [3, 4], 0)]);
    const after = (earned: number) => branch([roots, grown([episode(2, [1, 5], earned, inherits(0, 1))])], 1);
    expect(after(1)).toMatchObject([{ sample: 3, inherited: { sample: 0 } }]);
    expect(after(-1)).toMatchObject([{ sample: 3, inherited: { sample: 1 } }]);
  });

  test('carry what each token was sampled among', () => {
    const cut = { kept: [[1, 2], [1, 2], [], [2, 3], [2, 3]] };
    const [first] = branch([group([episode(0, [1, 2], 1, cut), episode(1, [3, 4], 0, cut)])], 1);
    expect(first!.kept).toEqual([[1, 2], [1, 2], []]);
  });

  test('never of one that failed; and begin at the prompt where there is no other', () => {
    const failed = [episode(0, [1, 2], null), episode(1, [3, 4], null)];
    expect(branch([group(failed)], 2)).toEqual(
      [2, 3].map((sample) => ({
        task: 0,
        sample,
        tokens: [],
        mask: [],
        samplerLogprobs: [],
        turns: [],
        status: { kind: 'running' },
      })),
    );
  });

  test('are failed as those were whose task nobody could pose', () => {
    const status = { kind: 'failed', boundary: 'environment', reason: 'no prompt' } as const;
    const unposed = group([episode(0, [], null, { status })]);
    unposed.tasks[0]!.promptTokens = [];
    expect(branch([unposed], 1)[0]!.status).toEqual(status);
  });
});

describe('what is learnt from a tree', () => {
  const roots = group([episode(0, [1, 2], 1), episode(1, [3, 4], -0.5)]);
  const round = grown([episode(2, [1, 5], -0.5, inherits(0, 1))]);

  test('are all samples of a task against each other, and each token once: where it was sampled', () => {
    const { sequences, degenerateGroups } = trainingSamples(
      [roots, round],
      creditBy({ scaleRewards: 'none' }),
    );
    expect(degenerateGroups).toBe(0);
    // −0 is 0.
    const advantages = sequences.map(({ streams }) =>
      streams.advantages!.slice(PROMPT.length).map((one) => one + 0),
    );
    expect(advantages).toEqual([
      [1, 1, 0, 1, 1],
      [-0.5, -0.5, 0, -0.5, -0.5],
      [0, 0, 0, -0.5, -0.5],
    ]);
    expect(sequences.map(({ mask }) => mask.slice(PROMPT.length))).toEqual([
      [1, 1, 0, 1, 1],
      [1, 1, 0, 1, 1],
      [0, 0, 0, 1, 1],
    ]);
  });

  test.each(['rft', 'dpo', 'kto'] as const)('is, by %s, whole episodes', (kind) => {
    const { components } = {
      components: [{ verifier: 'right', role: 'outcome' as const, weight: 1, gatedBy: null }],
    };
    const said = (score: number) => ({
      outcome: {
        kind: 'scored' as const,
        reward: score,
        components: [{ verifier: 'right', version: '1', score, contribution: score }],
      },
    });
    const of = group([episode(0, [1, 2], 0, said(0)), episode(1, [3, 4], 0, said(0))]);
    const better = grown([episode(2, [1, 5], 1, { ...said(1), ...inherits(0, 1) })]);
    const credit = creditBy({ kind });
    const { sequences } = trainingSamples([of, better], {
      ...credit,
      reward: { ...credit.reward, components },
    });
    const taught = sequences.find(({ tokens, label }) => label !== 0 && tokens.includes(5))!;
    expect(taught.mask).toEqual([0, 0, 1, 1, 0, 1, 1]);
  });

  test('is, by agentq, the better turn of a state, and nothing behind it', () => {
    const { sequences } = trainingSamples([roots, round], creditBy({ kind: 'agentq' }));
    const taught = sequences.map(({ tokens, mask, pair, label }) => ({
      turn: tokens.filter((_, at) => mask[at] === 1),
      tokens: tokens.slice(PROMPT.length),
      pair,
      label,
    }));
    expect(taught).toEqual([
      { turn: [2, 2], tokens: [1, 1, 7, 2, 2], pair: 0, label: 1 },
      { turn: [5, 5], tokens: [1, 1, 7, 5, 5], pair: 0, label: -1 },
      { turn: [1, 1], tokens: [1, 1], pair: 1, label: 1 },
      { turn: [3, 3], tokens: [3, 3], pair: 1, label: -1 },
    ]);
  });

  test('is the same where a ladder has judged all or a part of it anew, in whatever order it has', () => {
    const judged = (of: RolloutGroup): RolloutGroup => ({ ...of, id: `${of.id}.judged` });
    const plain = trainingSamples([roots, round], creditBy({ kind: 'agentq' }));
    for (const groups of [
      [judged(roots), judged(round)],
      [roots, judged(round)],
      [judged(round), roots],
    ])
      expect(trainingSamples(groups, creditBy({ kind: 'agentq' }))).toEqual(plain);
  });

  test('a part whose beginning is not there is a task of its own', () => {
    const { sequences } = trainingSamples(
      [grown([episode(2, [1, 5], 0, inherits(0, 1)), episode(3, [1, 6], 1, inherits(0, 1))])],
      creditBy({ scaleRewards: 'none' }),
    );
    expect(sequences).toHaveLength(2);
  });
});

test('what was sampled is counted once, and what was searched for says nothing of how hard a level is', async () => {
  const counts = await tally(reward, grown([episode(2, [1, 5], 0, inherits(0, 1))]));
  expect(counts).toMatchObject({ sampledTokens: 2, inheritedTokens: 2, turns: 1, arms: [] });
  expect(counts).not.toHaveProperty('tried');
  expect(counts.behaviour).toMatchObject({ observationTokens: 0, mostTurns: 2, longest: 4 });
  expect(counts.sampledLogprob).toBeCloseTo(-0.1);
  expect(counts.behaviour.rewardGroups).toBe(0);
  expect(counts.outcomes.scored).toBe(1);
});

test('calls of a beginning are those of the sample that made them, and a call made again behind it is a repetition', async () => {
  const calls = (names: readonly string[]) => ({
    turns: names.map((name, k) => ({
      start: 3 * k,
      end: 3 * k + 2,
      text: name,
      action: { kind: 'call' as const, call: { name, arguments: {} } },
      observation: { text: 'x', ...(name === 'broken' && { error: 'tool-error' as const }) },
    })),
  });
  const round = grown([
    episode(2, [1, 5], 0, { ...calls(['broken', 'broken']), ...inherits(0, 1) }),
    episode(3, [1, 6], 0, { ...calls(['broken', 'other']), ...inherits(0, 1) }),
  ]);
  const { behaviour } = await tally(reward, round);
  expect(behaviour).toMatchObject({
    calls: { broken: 1, other: 1 },
    toolErrors: 1,
    repeatedCalls: 1,
    duplicateCalls: 0,
  });
});

test('the numbers of samples that are added are known before any of them is', () => {
  const trees = [group([episode(0, [1, 2], 1), episode(1, [1, 3], 0)]), grown([episode(2, [1, 4], 0)])];
  expect(branch(trees, 2).map(({ sample }) => sample)).toEqual([
    firstSampleOf(trees),
    firstSampleOf(trees) + 1,
  ]);
  expect(firstSampleOf(trees)).toBe(3);
});
