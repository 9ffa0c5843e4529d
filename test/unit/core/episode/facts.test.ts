import { expect, test } from 'vitest';
import { episodeFactsOf } from '../../../../core/episode/facts.ts';
import type { Episode, RolloutGroup, Turn } from '../../../../core/episode/episode.ts';
import type { RewardSpec } from '../../../../core/schema/reward.ts';

const reward: Pick<RewardSpec, 'components'> = {
  components: [{ verifier: 'right', role: 'outcome', weight: 1, gatedBy: null }],
};

const call = (name: string, observation?: Turn['observation']): Turn => ({
  start: 0,
  end: 1,
  text: name,
  action: { kind: 'call', call: { name, arguments: {} } },
  ...(observation && { observation }),
});

const group = (...episodes: Partial<Episode>[]): RolloutGroup => ({
  id: 'group-0000',
  weights: 'w',
  temperature: 1,
  tasks: [
    {
      ref: { environment: 'house', split: 'train', level: 2, index: 5 },
      prompt: 'p',
      promptTokens: [1, 2, 3],
    },
    {
      ref: { environment: 'house', split: 'heldout', level: 3, index: 6 },
      prompt: 'q',
      promptTokens: [1],
      retried: true,
    },
  ],
  episodes: episodes.map((episode, sample) => ({
    sample,
    task: 0,
    tokens: [7, 8, 9],
    mask: [1, 0, 1],
    samplerLogprobs: [-0.5, 0, -0.25],
    turns: [],
    status: { kind: 'answered', answer: 'A' },
    outcome: { kind: 'failed', boundary: 'infra', reason: 'lost' },
    ...episode,
  })),
});

test('an episode in numbers: its task, its tokens, its reward, and what it called', () => {
  const [facts] = episodeFactsOf(
    group({
      turns: [
        call('look', { text: 'a', seconds: 0.25 }),
        call('look', { text: 'error: no', error: 'invalid-arguments' }),
        call('fly', { text: 'error: none', error: 'unknown-tool' }),
        {
          start: 1,
          end: 2,
          text: '?',
          action: { kind: 'malformed', reason: 'r' },
          observation: { text: 'error: r', error: 'malformed-call', seconds: 0.5 },
        },
      ],
      outcome: {
        kind: 'scored',
        reward: 0.9,
        components: [
          { verifier: 'right', version: '1', score: 1, contribution: 1 },
          { verifier: 'brief', version: '1', score: null, contribution: -0.1 },
        ],
      },
    }),
    reward,
  );
  expect(facts).toEqual({
    episode: 0,
    sample: 0,
    environment: 'house',
    split: 'train',
    level: 2,
    index: 5,
    retried: false,
    hinted: false,
    weights: 'w',
    status: 'answered',
    outcome: 'scored',
    reason: null,
    boundary: null,
    success: true,
    reward: 0.9,
    turns: 4,
    calls: 3,
    promptTokens: 3,
    sampledTokens: 2,
    observationTokens: 1,
    inheritedTokens: 0,
    logprobSum: -0.75,
    answer: 'A',
    scores: { right: 1, brief: null },
    contributions: { right: 1, brief: -0.1 },
    tools: { look: 2 },
    errors: { 'invalid-arguments': 1, 'unknown-tool': 1, 'malformed-call': 1 },
    toolSeconds: 0.75,
  });
});

test('what has no reward says why, and of what is not known nothing is made up', () => {
  const rows = episodeFactsOf(
    group(
      { task: 1 },
      {
        status: { kind: 'truncated', limit: 'turns' },
        outcome: { kind: 'truncated', limit: 'turns', reward: 0, components: [] },
      },
      {
        status: { kind: 'failed', boundary: 'tool', reason: 'gone' },
        turns: [call('look')],
        outcome: { kind: 'failed', boundary: 'tool', reason: 'gone' },
      },
      { outcome: { kind: 'abstained', reason: 'nobody knows' } },
      { inherited: { sample: 0, turns: 1, tokens: 2 }, outcome: { kind: 'pending', tier: 'simulation' } },
    ),
    reward,
  );
  expect(
    rows.map(({ outcome, reason, boundary, success, reward: earned }) => [
      outcome,
      reason,
      boundary,
      success,
      earned,
    ]),
  ).toEqual([
    ['failed', 'lost', 'infra', null, null],
    ['truncated', 'turns', null, false, 0],
    ['failed', 'gone', 'tool', false, null],
    ['abstained', 'nobody knows', null, null, null],
    ['pending', null, null, null, null],
  ]);
  expect(rows[0]).toMatchObject({ retried: true, split: 'heldout', level: 3, promptTokens: 1 });
  expect(rows[1]!.answer).toBeNull();
  // It was under way when the episode failed, so that there is such a tool.
  expect(rows[2]!.tools).toEqual({ look: 1 });
  expect(rows[4]!.inheritedTokens).toBe(2);
});

test('samples with a hint are told from the others', () => {
  const { tasks, ...of } = group({ task: 0 }, { task: 1 });
  const hinted = { ...of, tasks: [tasks[0]!, { ...tasks[1]!, learntBehind: [1, 2] }] };
  expect(episodeFactsOf(hinted, reward).map((facts) => facts.hinted)).toEqual([false, true]);
});

test('what an agent writes before its turns is its prompt, and no observation', () => {
  const turn = (start: number): Turn => ({ ...call('a'), start, end: start + 1 });
  const mask = [0, 0, 1, 0, 1, 0, 1, 0, 1] as const;
  const tokens = mask.map((_, at) => at);
  const facts = (more: Partial<Episode>) =>
    episodeFactsOf(
      group({ tokens, mask: [...mask], samplerLogprobs: tokens, turns: [2, 4, 6, 8].map(turn), ...more }),
      reward,
    )[0]!.observationTokens;
  expect(facts({})).toBe(3);
  // A conversation of its own from 5 on, and another end of the first one from 7 on.
  expect(facts({ branches: [{ start: 5, from: 0 }] })).toBe(2);
  expect(facts({ branches: [{ start: 7, from: 3 }] })).toBe(3);
});

test('a call of any name is counted under it', () => {
  const [facts] = episodeFactsOf(
    group({ turns: [call('__proto__', { text: '' }), call('constructor', { text: '' })] }),
    reward,
  );
  expect(Object.entries(facts!.tools)).toEqual([
    ['__proto__', 1],
    ['constructor', 1],
  ]);
});

test('each call of a turn with several is one, with what it brought, as far as they were made', () => {
  const names = ['look', 'fly', 'look', 'go'];
  const turn: Turn = {
    start: 0,
    end: 1,
    text: 'all',
    action: { kind: 'calls', calls: names.map((name) => ({ name, arguments: {} })) },
    results: [
      { text: 'a', seconds: 0.5 },
      { text: 'error: none', error: 'unknown-tool' },
    ],
  };
  const broken = { kind: 'failed', boundary: 'tool', reason: 'r' } as const;
  const [failed, ended] = episodeFactsOf(
    group(
      { turns: [turn], status: broken },
      {
        turns: [{ ...turn, observation: { text: 'a\nerror: none', done: true } }],
        status: { kind: 'ended' },
      },
    ),
    reward,
  );
  // The third call is the one that broke; behind the one that ended the episode none was made.
  expect(failed).toMatchObject({
    calls: 4,
    tools: { look: 2 },
    errors: { 'unknown-tool': 1 },
    toolSeconds: 0.5,
  });
  expect(ended).toMatchObject({ calls: 4, tools: { look: 1 }, errors: { 'unknown-tool': 1 } });
});
