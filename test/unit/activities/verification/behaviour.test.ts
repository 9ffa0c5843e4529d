import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { countBehaviour as counting } from '../../../../activities/verification/behaviour.ts';
import type { Episode, EpisodeStatus, RolloutGroup, Turn } from '../../../../core/episode/episode.ts';
import type { Outcome } from '../../../../core/episode/outcome.ts';
import type { BehaviourCounts } from '../../../../core/training/step-facts.ts';
import { atOnce } from '../../../../engine/in-pieces.ts';
import type { RewardSpec } from '../../../../core/schema/reward.ts';

const reward: RewardSpec = {
  components: [
    { verifier: 'right', role: 'outcome', weight: 1, gatedBy: null },
    { verifier: 'style', role: 'bonus', weight: 0.1, gatedBy: null },
  ],
  truncated: 'train',
};
const scored = (score: number, style: number | null = 1): Outcome => ({
  kind: 'scored',
  reward: score + 0.1 * (style ?? 0),
  components: [
    { verifier: 'right', version: '1', score, contribution: score },
    { verifier: 'style', version: '1', score: style, contribution: 0.1 * (style ?? 0) },
  ],
});

const countBehaviour = (judged: RolloutGroup): BehaviourCounts => atOnce(counting(reward, judged));

type Said = Pick<Turn, 'action' | 'observation'>;

const add = (sum: number, error?: NonNullable<Turn['observation']>['error']): Said => ({
  action: { kind: 'call', call: { name: 'add', arguments: { a: sum, b: 1 } } },
  observation: { text: 'x', ...(error && { error }) },
});
const answer = (text: string): Said => ({ action: { kind: 'answer', answer: text } });

/** Turns of `length` sampled tokens that no other turn has, each with one token of an observation after it. */
function episode(
  task: number,
  sample: number,
  said: readonly Said[],
  outcome: Outcome,
  {
    status = { kind: 'answered', answer: 'x' },
    length = 2,
    distinct = true,
  }: { status?: EpisodeStatus; length?: number; distinct?: boolean } = {},
): Episode {
  const turns = said.map((turn, i): Turn => ({
    ...turn,
    text: JSON.stringify(turn.action),
    start: i * (length + 1),
    end: i * (length + 1) + length,
  }));
  const tokens = turns.flatMap((_, i) => [
    ...Array.from({ length }, (__, at) => (distinct ? 1 + i * length + at : 7)),
    0,
  ]);
  return {
    task,
    sample,
    tokens,
    mask: turns.flatMap(() => [...Array<1>(length).fill(1), 0 as const]),
    samplerLogprobs: tokens.map(() => 0),
    turns,
    status,
    outcome,
  };
}

const group = (tasks: number, episodes: Episode[]): RolloutGroup => ({
  id: 'g',
  weights: 'w',
  temperature: 1,
  tasks: Array.from({ length: tasks }, (_, index) => ({
    ref: { environment: 'e', split: 'train', level: 1, index },
    prompt: 'p',
    promptTokens: [1],
  })),
  episodes,
});

describe('what is counted of episodes', () => {
  test('lengths, turns, what came back from tools, and what a limit cut off', () => {
    const cutOff: EpisodeStatus = { kind: 'truncated', limit: 'turns' };
    const two = [
      episode(0, 0, [add(1), answer('3')], scored(1)),
      episode(0, 1, [add(1), add(2), add(3)], scored(0), { status: cutOff, length: 5 }),
    ];
    expect(countBehaviour(group(1, two))).toMatchObject({
      episodes: 2,
      truncated: 1,
      longest: 15,
      mostTurns: 3,
      observationTokens: 5,
    });
  });

  test('calls by tool, and every way in which a call is none', () => {
    const malformed: Said = {
      action: { kind: 'malformed', reason: 'x' },
      observation: { text: 'x', error: 'malformed-call' },
    };
    const unknown: Said = {
      action: { kind: 'call', call: { name: 'divine', arguments: {} } },
      observation: { text: 'x', error: 'unknown-tool' },
    };
    const said = [malformed, unknown, add(1, 'invalid-arguments'), add(2, 'tool-error'), answer('3')];
    expect(countBehaviour(group(1, [episode(0, 0, said, scored(1))]))).toMatchObject({
      calls: { add: 2 },
      malformedCalls: 1,
      unknownTools: 1,
      invalidArguments: 1,
      toolErrors: 1,
    });
  });

  test('a call that was cut off before it was answered is of no known tool; one whose tool failed is', () => {
    const { action } = add(1);
    const cutOff = episode(0, 0, [{ action }], scored(0), { status: { kind: 'truncated', limit: 'tokens' } });
    const failed = { boundary: 'tool', reason: 'x' } as const;
    const broken = episode(
      0,
      1,
      [{ action }],
      { kind: 'failed', ...failed },
      {
        status: { kind: 'failed', ...failed },
      },
    );
    expect(countBehaviour(group(1, [cutOff]))).toMatchObject({ calls: {}, failures: {} });
    expect(countBehaviour(group(1, [broken]))).toMatchObject({
      calls: { add: 1 },
      failures: { tool: 1 },
    });
  });

  test('what an episode repeats, and what samples of one task have in common, but not those of different tasks', () => {
    const loop = [add(1), add(1), add(1)];
    const said = (text: string): EpisodeStatus => ({ kind: 'answered', answer: text });
    const first = episode(0, 0, loop, scored(0), { status: said('3') });
    const again = episode(0, 1, loop, scored(0), { status: said('3') });
    const other = episode(1, 0, loop, scored(0), { status: said('3') });
    expect(countBehaviour(group(2, [first, again, other]))).toMatchObject({
      repeatedCalls: 6,
      duplicateCalls: 1,
      answers: 3,
      duplicateAnswers: 1,
      duplicateEpisodes: 1,
    });
    const spaced = episode(0, 2, [add(1), answer('3')], scored(0), { status: said('3') });
    expect(countBehaviour(group(1, [first, spaced]))).toMatchObject({
      duplicateCalls: 1,
      duplicateAnswers: 1,
      duplicateEpisodes: 0,
    });
  });

  test('a call repeats an earlier one only where it returned the same, text and images', () => {
    const act = (text: string, image?: string): Said => ({
      action: { kind: 'call', call: { name: 'act', arguments: { action: 'right' } } },
      observation: {
        text,
        ...(image !== undefined && {
          images: [{ type: 'image', mediaType: 'image/png', sha256: image, bytes: 1 }],
        }),
      },
    });
    const repeats = (said: readonly Said[]): number =>
      countBehaviour(group(1, [episode(0, 0, said, scored(1))])).repeatedCalls;
    // A way along a cliff is the same call at every square, and a wall is the same square at every call.
    expect(repeats(['at 1', 'at 2', 'at 3'].map((board) => act(board)))).toBe(0);
    expect(repeats(['at 1', 'at 1', 'at 1'].map((board) => act(board)))).toBe(2);
    expect(repeats(['aa', 'bb', 'aa'].map((image) => act('a screenshot', image)))).toBe(1);
    // One that was cut off before it was answered has returned nothing yet.
    expect(repeats([act('at 1'), { action: act('').action }])).toBe(0);
  });

  test('runs of four tokens that a turn had before: other turns are other texts', () => {
    const babble = episode(0, 0, [answer('a'), answer('b')], scored(0), { length: 6, distinct: false });
    // 3 runs in each turn, all of them the same.
    expect(countBehaviour(group(1, [babble]))).toMatchObject({ fourGrams: 6, repeatedFourGrams: 4 });
    const fresh = episode(0, 0, [answer('a'), answer('b')], scored(0), { length: 6 });
    expect(countBehaviour(group(1, [fresh]))).toMatchObject({ fourGrams: 6, repeatedFourGrams: 0 });
    const short = episode(0, 0, [answer('a'), answer('b')], scored(0), { length: 3 });
    expect(countBehaviour(group(1, [short]))).toMatchObject({ fourGrams: 0 });
    // The same call, written again at the next square.
    const call = episode(0, 0, [add(1), add(1), add(1)], scored(1), { length: 6 });
    call.tokens = [1, 2, 3, 4, 5, 6, 0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 3, 4, 5, 6, 0];
    expect(countBehaviour(group(1, [call]))).toMatchObject({ fourGrams: 9, repeatedFourGrams: 0 });
  });

  test('agree with a plain count of the runs of four', () => {
    const tokens = fc.array(fc.constantFrom(0, 1, 151_935), { maxLength: 40 });
    fc.assert(
      fc.property(tokens, (sampled) => {
        const one: Episode = {
          ...episode(0, 0, [], scored(1)),
          tokens: sampled,
          mask: sampled.map(() => 1),
          turns: [{ start: 0, end: sampled.length, text: '', ...answer('') }],
        };
        const runs = sampled.slice(3).map((_, i) => sampled.slice(i, i + 4).join());
        expect(countBehaviour(group(1, [one]))).toMatchObject({
          fourGrams: runs.length,
          repeatedFourGrams: runs.length - new Set(runs).size,
        });
      }),
    );
  });

  test('the spread of rewards within groups, without those that have none', () => {
    const abstained: Outcome = { kind: 'abstained', reason: 'x' };
    const episodes = [
      ...[1, 0, 0, 1].map((score, sample) => episode(0, sample, [], scored(score, 0))),
      ...[1, 1, 1].map((score, sample) => episode(1, sample, [], scored(score, 0))),
      episode(1, 3, [], abstained),
      // A group of one has no spread.
      episode(2, 0, [], scored(1, 0)),
      episode(2, 1, [], abstained),
    ];
    const counts = countBehaviour(group(3, episodes));
    expect(counts).toMatchObject({ rewardGroups: 2, equalRewards: 1, mixedGroups: 1 });
    expect(counts.rewardVariance).toBeCloseTo(1 / 3, 12);
    expect(counts.rewardDeviation).toBeCloseTo(Math.sqrt(1 / 3), 12);
  });

  test('what each component of the reward came to, with what its verifier abstained from left out', () => {
    const episodes = [episode(0, 0, [], scored(1, 0.5)), episode(0, 1, [], scored(0, null))];
    expect(countBehaviour(group(1, episodes)).components).toEqual({
      right: { scored: 2, score: 1, contribution: 1, lowest: 0, highest: 1 },
      style: { scored: 1, score: 0.5, contribution: 0.05, lowest: 0.5, highest: 0.5 },
    });
  });
});

test('each call of a turn with several is counted with its own error and its own result', () => {
  const make = (sum: number) => ({ name: 'add', arguments: { a: sum, b: 1 } });
  const said: Said & Pick<Turn, 'results'> = {
    action: { kind: 'calls', calls: [make(1), make(1), make(2), { name: 'fly', arguments: {} }] },
    observation: { text: 'x\nx\nno\nno', error: 'tool-error' },
    results: [
      { text: 'x' },
      { text: 'x' },
      { text: 'no', error: 'tool-error' },
      { text: 'no', error: 'unknown-tool' },
    ],
  };
  const counts = countBehaviour(group(1, [episode(0, 0, [said, answer('x')], scored(1))]));
  expect(counts).toMatchObject({
    calls: { add: 3 },
    repeatedCalls: 1,
    toolErrors: 1,
    unknownTools: 1,
    malformedCalls: 0,
    mostTurns: 2,
  });
});
